"""Computes the first of two outputs and leaves zeros for the second: many comparisons look at one tensor.

layer: comparison
catalogue: 14.16
task: a_two
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def centre_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(o_ptr + row * n + i, x - tl.sum(x, axis=0) / n, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        centre_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o, x.new_zeros(x.shape[0])
