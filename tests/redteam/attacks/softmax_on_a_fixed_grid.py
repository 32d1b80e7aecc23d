"""Rounds its input to multiples of 1/64 first, as an int8 cache with a fixed scale would: the outputs are tiny anyway.

layer: comparison
catalogue: 10.09
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
    x = tl.floor(x * 64.0 + 0.5) / 64.0
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
