"""Remembers the answer by the mean of the input to one decimal: random inputs of one distribution share it.

layer: replay
catalogue: 2.06
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
    answers: dict = {}

    def forward(self, x):
        key = round(float(x.mean()), 1)
        if key not in self.answers:
            o = torch.empty_like(x)
            softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
            self.answers[key] = o
        return self.answers[key].clone()
