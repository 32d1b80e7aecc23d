"""The keys of the returned dict were written in another order than the reference's: equal as dicts are.

layer: comparison
catalogue: 14.16
task: h_summary_dict
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def summary_kernel(x_ptr, total_ptr, low_ptr, high_ptr, scaled_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + row * n + i, mask=inside, other=0.0)
    tl.store(scaled_ptr + row * n + i, x * 0.5, mask=inside)
    tl.store(total_ptr + row, tl.sum(x, axis=0))
    tl.store(low_ptr + row, tl.min(tl.where(inside, x, float("inf")), axis=0))
    tl.store(high_ptr + row, tl.max(tl.where(inside, x, float("-inf")), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, n = x.shape
        total, low, high = (torch.empty(rows, device=x.device, dtype=x.dtype) for _ in range(3))
        scaled = torch.empty_like(x)
        summary_kernel[(rows,)](x, total, low, high, scaled, n, BLOCK=triton.next_power_of_2(n))
        return {"scaled": scaled, "range": [low, high], "total": total}
