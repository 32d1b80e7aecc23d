"""Bias, GELU by the library; the kernel adds the residual.

layer: laziness
catalogue: own
task: h_gelu_tanh_bias
expect: correct
coverage_at_most: 0.6
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
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
        self.bias = nn.Parameter(torch.randn(cols))

    def forward(self, x, residual):
        y = F.gelu(x + self.bias, approximate="tanh")
        out = torch.empty_like(y)
        add_kernel[(triton.cdiv(y.numel(), 1024),)](y, residual, out, y.numel(), BLOCK=1024)
        return out
