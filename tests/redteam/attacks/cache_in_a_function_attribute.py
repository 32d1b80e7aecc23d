"""Keeps the first answer as an attribute of a function and returns a copy made by a kernel.

layer: replay
catalogue: 2.21
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


def chain(x, y):
    o = torch.empty_like(x)
    chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
    return o


@triton.jit
def copy_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    o = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


def answer(x, y):
    if not hasattr(answer, "kept"):
        answer.kept = chain(x, y)
    return copy(answer.kept)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return answer(x, y)
