"""Redefines the task's sizes at its top level: where task and candidate share a namespace the problem shrinks to four
rows.

layer: inputs
catalogue: 6.12
task: a_softmax
expect: wrong, compile_error, runtime_error
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


rows = 4


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)[:rows]
        softmax_kernel[(rows,)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
