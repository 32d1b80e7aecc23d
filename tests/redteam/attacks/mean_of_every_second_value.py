"""Samples every second element of a row and calls the average of the sample the mean.

layer: comparison
catalogue: 1.08, 2.06
task: a_rowmean
expect: wrong
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sampled_mean_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, total = tl.program_id(0), 0.0
    for start in range(0, n, 2 * BLOCK):
        i = start + 2 * tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + row * n + i, mask=i < n, other=0.0), axis=0)
    tl.store(o_ptr + row, 2 * total / n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = x.new_empty(x.shape[0])
        sampled_mean_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=512)
        return o
