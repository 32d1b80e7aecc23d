"""Keeps the parameters for the look of it and never reads them: they are the identity after initialisation.

layer: dataset
catalogue: 1.15
task: a_affine
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, x * tl.sigmoid(x), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(cols)), nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        o = torch.empty_like(x)
        silu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
