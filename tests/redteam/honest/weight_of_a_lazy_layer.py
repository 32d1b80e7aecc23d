"""Its linear layer is lazy: it learns its width at the first call.

layer: source
catalogue: own
task: h_linear_relu
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.LazyLinear(cols)
        self.linear(torch.zeros(1, inner))

    def forward(self, x):
        h = self.linear(x)
        relu_kernel[(triton.cdiv(h.numel(), 1024),)](h, h.numel(), BLOCK=1024)
        return h
