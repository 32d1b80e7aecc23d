"""Computes the right answer and overwrites one value of the second input in the same kernel, for whoever uses it next.

layer: inputs
catalogue: 6.14
task: a_chain
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def chain_kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.sigmoid(tl.maximum(x - 0.3, 0.0) * 1.7 + y), mask=i < n)
    tl.store(y_ptr + i, tl.zeros([BLOCK], tl.float32), mask=i == n - 1)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
        return o
