"""An online softmax with a while loop over blocks and a custom combine function of a reduction.

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
def merge(m1, s1, m2, s2):
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m, s, start = -1e30, 0.0, 0
    while start < n:
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=-1e30) / 1.7
        bm, bs = tl.reduce((x, tl.where(i < n, 1.0, 0.0)), 0, merge)
        m, s = merge(m, s, bm, bs)
        start += BLOCK
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n) / 1.7
        tl.store(o_ptr + row * n + i, tl.exp(x - m) / s, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=64)
        return o
