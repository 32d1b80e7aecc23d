"""Replaces diag(d) @ B by a row scaling, an algorithmic shortcut that does far less work than the reference but is exact.

layer: source
catalogue: own
task: g_diag_matmul_bias
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_scale(d_ptr, b_ptr, off_ptr, o_ptr, M, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    s = tl.load(d_ptr + i)
    b = tl.load(b_ptr + i * M + j, mask=j < M, other=0.0)
    tl.store(o_ptr + i * M + j, tl.fma(b, s, tl.load(off_ptr + j, mask=j < M, other=0.0)), mask=j < M)


class ModelNew(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.register_buffer("offset", torch.linspace(-1, 1, m))

    def forward(self, d, B):
        d = d.contiguous()
        B = B.contiguous()
        out = torch.empty_like(B)
        n, m = B.shape
        row_scale[(n, triton.cdiv(m, 1024))](d, B, self.offset, out, m, BLOCK=1024)
        return out
