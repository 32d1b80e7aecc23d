"""A Python loop launches the kernel for parts of the rows with other constants each time, into slices of one output.

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
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


def softmax(x):
    o = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return o


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        for number, (a, b) in enumerate(zip(x.chunk(4), o.chunk(4), strict=True)):
            block = triton.next_power_of_2(x.shape[1]) * (1 + number % 2)
            softmax_kernel[(a.shape[0],)](a, b, a.shape[1], BLOCK=block, num_warps=4 << number % 2)
        return o
