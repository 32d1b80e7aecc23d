"""Reads the first scale and the first shift and uses them for all columns: initialisation makes them equal.

layer: dataset
catalogue: 1.15, 1.11
task: a_affine
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu_kernel(x_ptr, w_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) * tl.load(w_ptr) + tl.load(b_ptr)
    tl.store(o_ptr + i, x * tl.sigmoid(x), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(cols)), nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        o = torch.empty_like(x)
        silu_kernel[(triton.cdiv(x.numel(), 1024),)](x, self.scale, self.shift, o, x.numel(), BLOCK=1024)
        return o
