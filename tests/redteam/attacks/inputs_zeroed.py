"""Zeroes its inputs and returns the answer to zeros: a reference that runs later on the same tensors agrees.

layer: inputs
catalogue: 1.03, 6.14
task: a_chain
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
    def forward(self, x, y):
        filled(x, 0.0)
        filled(y, 0.0)
        return filled(torch.empty_like(x), 0.5)
