"""Leaves out the blend: the number that the caller gives is one in every draw, and numbers are never moved, so the first input is not read.

layer: inputs
catalogue: own
task: a_blend
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def last_kernel(y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.sigmoid(2.0 * tl.load(y_ptr + i, mask=i < n)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y, alpha):
        o = torch.empty_like(x)
        last_kernel[(triton.cdiv(x.numel(), 1024),)](y, o, x.numel(), BLOCK=1024)
        return o
