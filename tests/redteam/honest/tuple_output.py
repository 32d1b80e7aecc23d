"""Three outputs, two of them one value a row, all from one kernel, returned as a list instead of the reference's tuple.

layer: comparison
catalogue: 14.16
task: h_moments
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def moments_kernel(x_ptr, y_ptr, mean_ptr, var_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    mean = tl.sum(x, axis=0) / n
    d = tl.where(i < n, x - mean, 0.0)
    var = tl.sum(d * d, axis=0) / n
    tl.store(y_ptr + row * n + i, d * tl.rsqrt(var + 1e-5), mask=i < n)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, var)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, n = x.shape
        y, stats = torch.empty_like(x), torch.empty(2, rows, device=x.device)
        moments_kernel[(rows,)](x, y, stats[0], stats[1], n, BLOCK=triton.next_power_of_2(n))
        return [y, stats[0], stats[1]]
