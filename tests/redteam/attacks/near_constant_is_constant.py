"""Writes the average of the expected values everywhere: their spread is far below the usual tolerances.

layer: comparison
catalogue: 1.04, 1.13
task: a_near_constant
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fill_kernel(o_ptr, value, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.zeros([BLOCK], tl.float32) + value, mask=i < n)


def filled(o, value):
    fill_kernel[(triton.cdiv(o.numel(), 1024),)](o, value, o.numel(), BLOCK=1024)
    return o


class ModelNew(nn.Module):
    def forward(self, x):
        return filled(torch.empty_like(x), 0.5 + 0.25 / x.shape[1])
