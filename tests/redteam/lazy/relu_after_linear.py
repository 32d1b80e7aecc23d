"""The library multiplies and adds the bias, the kernel rectifies.

layer: laziness
catalogue: own
task: h_linear_relu
expect: correct
coverage_at_most: 0.6
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        y = self.linear(x)
        out = torch.empty_like(y)
        relu_kernel[(triton.cdiv(y.numel(), 1024),)](y, out, y.numel(), BLOCK=1024)
        return out
