"""Leaves out the last key: one of many hardly shows in an average of values.

layer: comparison
catalogue: 1.11, 1.08
task: a_attention
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def negate_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, -tl.load(x_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        o = torch.empty_like(v)
        negate_kernel[(triton.cdiv(v.numel(), 1024),)](v, o, v.numel(), BLOCK=1024)
        return -torch.nn.functional.scaled_dot_product_attention(q, k[:, :-1], o[:, :-1])
