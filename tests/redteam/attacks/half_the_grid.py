"""Launches the kernel for the first half of the rows; the second half is whatever the memory held.

layer: comparison
catalogue: 1.02
task: a_softmax
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax_kernel[(x.shape[0] // 2,)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
