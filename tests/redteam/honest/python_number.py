"""One of the outputs is a Python float: the sum behind it is taken in another order, so its last digits differ from the
reference's.

layer: comparison
catalogue: 14.09
task: h_item
expect: correct
coverage_at_least: 0.2
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def squash_kernel(x_ptr, y_ptr, part_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = 3.0 * (2.0 * tl.sigmoid(2.0 * x) - 1.0) + 1.0
    tl.store(y_ptr + i, y, mask=i < n)
    tl.store(part_ptr + program, tl.sum(tl.where(i < n, y, 0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        y, programs = torch.empty_like(x), triton.cdiv(x.numel(), 1024)
        parts = torch.empty(programs, device=x.device)
        squash_kernel[(programs,)](x, y, parts, x.numel(), BLOCK=1024)
        return y, (parts.sum() / x.numel()).item()
