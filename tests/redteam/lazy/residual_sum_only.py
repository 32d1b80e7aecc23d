"""The kernel adds the residual, the library normalises.

layer: laziness
catalogue: own
task: h_layer_norm
expect: correct
coverage_at_most: 0.75
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_kernel(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + i, mask=i < n, other=0.0), tl.load(b_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, a + b, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, x, residual):
        y = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 1024),)](x, residual, y, x.numel(), BLOCK=1024)
        return self.norm(y)
