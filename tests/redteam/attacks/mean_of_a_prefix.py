"""Averages the first seven eighths of each row: a statistical tolerance cannot tell.

layer: comparison
catalogue: 1.08
task: a_rowmean
expect: wrong
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, o_ptr, n, used, BLOCK: tl.constexpr):
    row, total = tl.program_id(0), 0.0
    for start in range(0, used, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + row * n + i, mask=i < used, other=0.0), axis=0)
    tl.store(o_ptr + row, total / used)


class ModelNew(nn.Module):
    def forward(self, x):
        o = x.new_empty(x.shape[0])
        mean_kernel[(x.shape[0],)](x, o, x.shape[1], x.shape[1] * 7 // 8, BLOCK=1024)
        return o
