"""fmax and a row maximum that leave NaNs out: Triton's maximum and max do so by default.

layer: comparison
catalogue: own
task: h_fmax_with_nans
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fmax_rows(x_ptr, y_ptr, o_ptr, m_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf"))
    y = tl.load(y_ptr + row * n + i, mask=i < n, other=0.0)
    x = tl.where(x > 1.0, float("nan"), x)
    tl.store(o_ptr + row * n + i, tl.maximum(x, y), mask=i < n)
    tl.store(m_ptr + row, tl.max(x, 0))


class ModelNew(nn.Module):
    def forward(self, x, y):
        o, m = torch.empty_like(x), x.new_empty(x.shape[0])
        fmax_rows[(x.shape[0],)](x, y, o, m, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o, m
