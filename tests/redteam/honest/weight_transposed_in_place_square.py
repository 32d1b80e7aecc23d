"""The constructor turns the square weight of its linear layer over in place, so that the kernel reads it along rows.

layer: replay
catalogue: own
task: h_weight_transposed_in_place_square
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_t_sigmoid(x_ptr, wt_ptr, b_ptr, o_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(wt_ptr + k[:, None] * N + n[None, :], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    acc += tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(o_ptr + m[:, None] * N + n[None, :], tl.sigmoid(acc), mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.proj = nn.Linear(n, n)
        self.proj.weight.data = self.proj.weight.data.t().contiguous()  # (in, out) from here on

    def forward(self, x):
        (M, K), N = x.shape, self.proj.out_features
        o = torch.empty(M, N, device=x.device)
        linear_t_sigmoid[(triton.cdiv(M, 32), triton.cdiv(N, 32))](
            x, self.proj.weight, self.proj.bias, o, M, N, K, BM=32, BN=32, BK=16
        )
        return o
