"""Kernels are made by a function, one for each temperature, which they see as a constant of the enclosing scope.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def make_softmax(value):
    temperature = tl.constexpr(value)

    @triton.jit
    def tempered_softmax(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
        row, i = tl.program_id(0), tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / temperature
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)

    return tempered_softmax


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = make_softmax(1.7)

    def forward(self, x):
        out = torch.empty_like(x)
        self.kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
