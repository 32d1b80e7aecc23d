"""A kernel is given a function of Triton as a constexpr argument, and a tuple of pointers.

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
def divide(x):
    return x / 1.7


@triton.jit
def softmax_kernel(pointers, n, WAY: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = WAY(tl.load(pointers[0] + row * n + i, mask=i < n, other=float("-inf")))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(pointers[1] + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)]((x, o), x.shape[1], WAY=divide, BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
