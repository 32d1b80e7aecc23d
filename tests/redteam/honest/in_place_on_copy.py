"""Copies the input and works in place on the copy.

layer: inputs
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.3
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_in_place(x_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(x_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.detach().clone(memory_format=torch.contiguous_format)
        softmax_in_place[(y.shape[0],)](y, y.shape[1], BLOCK=triton.next_power_of_2(y.shape[1]))
        return y
