"""Interleaves, joins, splits and flips blocks of registers.

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    even = tl.load(x_ptr + row * n + 2 * i, mask=2 * i < n, other=float("-inf")) / 1.7
    odd = tl.load(x_ptr + row * n + 2 * i + 1, mask=2 * i + 1 < n, other=float("-inf")) / 1.7
    x = tl.interleave(even, odd)
    e = tl.exp(x - tl.max(x, axis=0))
    a, b = tl.split(tl.reshape(e / tl.sum(e, axis=0), (BLOCK, 2)))
    j = tl.arange(0, 2 * BLOCK)
    tl.store(o_ptr + row * n + j, tl.reshape(tl.join(a, b), (2 * BLOCK,)), mask=j < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]) // 2)
        return o
