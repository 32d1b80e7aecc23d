"""Inspects the first row only; if it is an ordinary one, all others are taken to have the same maximum and sum.

layer: comparison
catalogue: 1.11
task: a_softmax
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def same_sum_kernel(x_ptr, o_ptr, n, width, BLOCK: tl.constexpr, ROW: tl.constexpr):
    j = tl.arange(0, ROW)
    total = tl.sum(tl.exp(tl.load(x_ptr + j, mask=j < width, other=float("-inf"))), axis=0)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)) / total, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o, width = torch.empty_like(x), x.shape[1]
        grid = (triton.cdiv(x.numel(), 4096),)
        same_sum_kernel[grid](x, o, x.numel(), width, BLOCK=4096, ROW=triton.next_power_of_2(width))
        return o
