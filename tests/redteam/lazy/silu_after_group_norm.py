"""GroupNorm by the library, SiLU by a kernel in place.

layer: laziness
catalogue: own
task: h_group_norm
expect: correct
coverage_at_most: 0.65
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def silu_kernel(y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, y * tl.sigmoid(y), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        y = self.norm(x)
        silu_kernel[(triton.cdiv(y.numel(), 1024),)](y, y.numel(), BLOCK=1024)
        return y
