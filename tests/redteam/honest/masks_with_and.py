"""`and` and `or` between masks.

layer: source
catalogue: own
task: h_masks_with_and
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def band_matmul(a_ptr, b_ptr, c_ptr, M, N, width, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    first = tl.maximum(tl.program_id(0) * BM - width, 0) // BK * BK
    last = tl.minimum((tl.program_id(0) + 1) * BM + width, M)
    for k0 in range(first, last, BK):
        k = k0 + tl.arange(0, BK)
        off = m[:, None] - k[None, :]
        a_mask = (m[:, None] < M) and (k[None, :] < M) and (off <= width) and (off >= -width)
        a = tl.load(a_ptr + m[:, None] * M + k[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < M) and (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) and (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, a, b):
        M, N = a.shape[0], b.shape[1]
        c = torch.empty(M, N, device=a.device, dtype=a.dtype)
        band_matmul[triton.cdiv(M, 32), triton.cdiv(N, 16)](a, b, c, M, N, self.width, 32, 16, 16)
        return c
