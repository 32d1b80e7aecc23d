"""Replaces the sigmoid by a fraction of two polynomials, cut off at one: right to two decimals.

layer: comparison
catalogue: 1.12
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
    u = 0.5 * (tl.maximum(x - 0.3, 0.0) * 1.7 + y)
    t = u * (15.0 + u * u) / (15.0 + 6.0 * u * u)
    tl.store(o_ptr + i, 0.5 + 0.5 * tl.minimum(tl.maximum(t, -1.0), 1.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
        return o
