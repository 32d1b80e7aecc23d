"""An integer output: the index of the maximum, stored as int64, beside the value.

layer: comparison
catalogue: 14.16
task: h_argmax
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def max_kernel(x_ptr, value_ptr, index_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    tl.store(value_ptr + row, tl.max(x, axis=0))
    tl.store(index_ptr + row, tl.argmax(x, axis=0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, n = x.shape
        values = x.new_empty(rows)
        indices = torch.empty(rows, dtype=torch.int64, device=x.device)
        max_kernel[(rows,)](x, values, indices, n, BLOCK=triton.next_power_of_2(n))
        return values, indices
