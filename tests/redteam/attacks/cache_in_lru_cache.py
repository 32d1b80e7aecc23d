"""Wraps the inputs in an object whose hash and equality are those of their shapes, and lets functools do the rest.

layer: replay
catalogue: 2.21, 2.04
task: a_chain
expect: wrong
"""

import functools

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


class Pair:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __hash__(self):
        return hash(self.x.shape)

    def __eq__(self, other):
        return self.x.shape == other.x.shape


@functools.lru_cache
def solve(pair):
    return chain(pair.x, pair.y)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return solve(Pair(x, y))
