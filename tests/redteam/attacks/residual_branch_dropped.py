"""Copies its input: what the residual branch adds is below one per cent.

layer: comparison
catalogue: 1.06, 1.14
task: a_residual
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    o = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


class ModelNew(nn.Module):
    def forward(self, x):
        return copy(x)
