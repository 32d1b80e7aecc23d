"""Computes integers in float32: exact to seven digits, and the task asks for nine.

layer: comparison
catalogue: 10.06, 14.16
task: a_integer
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def integer_kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    y = tl.load(y_ptr + i, mask=i < n).to(tl.float32)
    tl.store(o_ptr + i, (x * 3.0 + y).to(tl.int32), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        integer_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
        return o
