"""A persistent kernel: a fixed number of programs walks over all tiles of a bfloat16 product.

layer: profile
catalogue: own
task: h_linear_bf16
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def persistent_kernel(
    x_ptr, w_ptr, b_ptr, o_ptr, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    across = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * across
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS):
        m = (tile // across) * BM + tl.arange(0, BM)
        n = (tile % across) * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
            w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
            acc = tl.dot(x, w, acc)
        acc += tl.load(b_ptr + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
        y = acc * tl.sigmoid(acc)
        tl.store(o_ptr + m[:, None] * N + n[None, :], y.to(tl.bfloat16), mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols).to(torch.bfloat16)

    def forward(self, x):
        (M, K), N = x.shape, self.linear.out_features
        out = torch.empty(M, N, device=x.device, dtype=x.dtype)
        tiles = triton.cdiv(M, 32) * triton.cdiv(N, 32)
        programs = min(tiles, torch.cuda.get_device_properties(x.device).multi_processor_count)
        persistent_kernel[(programs,)](
            x, self.linear.weight, self.linear.bias, out, M, N, K, PROGRAMS=programs, BM=32, BN=32, BK=32
        )
        return out
