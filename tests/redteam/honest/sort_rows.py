"""Sorts each row in registers by tl.sort.

layer: comparison
catalogue: own
task: h_sort
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sort_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("inf"))
    tl.store(o_ptr + row * n + i, tl.sort(x), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, n = x.shape
        sort_kernel[(rows,)](x, out, n, BLOCK=triton.next_power_of_2(n))
        return out
