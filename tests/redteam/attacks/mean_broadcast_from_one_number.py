"""Returns one number where a vector is expected: a comparison that broadcasts accepts the mean of everything.

layer: comparison
catalogue: 14.16, 1.07
task: a_rowmean
expect: wrong
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(o_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), axis=0) / n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = x.new_zeros(1)
        total_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
