"""Drops the product with a weight that is the identity after initialisation; only its bias is read.

layer: comparison
catalogue: own
task: t_eye
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu_kernel(x_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n) + tl.load(b_ptr + i, mask=i < n)
    tl.store(o_ptr + row * n + i, x * tl.sigmoid(x), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        o = torch.empty_like(x)
        silu_kernel[(x.shape[0],)](x, self.mix.bias, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
