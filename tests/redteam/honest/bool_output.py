"""A boolean mask and integer counts. Disabling the kernel for a test must work on booleans too.

layer: comparison
catalogue: own
task: h_threshold
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def band_kernel(x_ptr, inside_ptr, count_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("inf"))
    inside = (x > -0.5) & (x <= 1.0)
    tl.store(inside_ptr + row * n + i, inside, mask=i < n)
    tl.store(count_ptr + row, tl.sum(inside.to(tl.int32), axis=0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, n = x.shape
        inside = torch.empty(x.shape, dtype=torch.bool, device=x.device)
        counts = torch.empty(rows, dtype=torch.int64, device=x.device)
        band_kernel[(rows,)](x, inside, counts, n, BLOCK=triton.next_power_of_2(n))
        return inside, counts
