"""A constant factor of the task is multiplied into weight and bias by the constructor, in place.

layer: replay
catalogue: own
task: h_scale_folded_in_place
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_leaky(x_ptr, w_ptr, b_ptr, o_ptr, M, N, K, slope, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    acc += tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
    acc = tl.where(acc > 0, acc, acc * slope)
    tl.store(o_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, n, m, multiplier, slope):
        super().__init__()
        self.gemm = nn.Linear(n, m)
        self.slope = slope
        with torch.no_grad():
            self.gemm.weight.mul_(multiplier)
            self.gemm.bias.mul_(multiplier)

    def forward(self, x):
        (M, K), N = x.shape, self.gemm.out_features
        o = torch.empty(M, N, device=x.device)
        linear_leaky[(triton.cdiv(M, 32), triton.cdiv(N, 32))](
            x, self.gemm.weight, self.gemm.bias, o, M, N, K, self.slope, BM=32, BN=32, BK=16
        )
        return o
