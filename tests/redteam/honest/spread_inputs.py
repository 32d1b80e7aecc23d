"""Inputs of one column, one strided row and no dimension are spread over the output in the kernel, one of them
backwards.

layer: inputs
catalogue: own
task: h_broadcast
expect: correct
coverage_at_least: 0.9
"""

import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def spread_kernel(c_ptr, r_ptr, s_ptr, o_ptr, n, stride, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    c, r = tl.load(c_ptr + row), tl.load(r_ptr + (n - 1 - i) * stride, mask=i < n)
    tl.store(o_ptr + row * n + i, libdevice.atan2(c + 0.0 * r, r) + tl.load(s_ptr), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, column, row, number):
        o = column.new_empty(column.shape[0], row.shape[0])
        block = triton.next_power_of_2(row.shape[0])
        spread_kernel[(column.shape[0],)](column, row, number, o, row.shape[0], row.stride(0), BLOCK=block)
        return o
