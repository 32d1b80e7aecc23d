"""Skips the dropout: its expectation is the input, and the mean hides the difference.

layer: comparison
catalogue: 14.05, 1.14
task: a_dropout
expect: wrong
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, total = tl.program_id(0), 0.0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + row * n + i, mask=i < n, other=0.0), axis=0)
    tl.store(o_ptr + row, total / n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = x.new_empty(x.shape[0])
        mean_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=1024)
        return o
