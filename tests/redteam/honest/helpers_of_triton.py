"""Helper functions return tuples, take constexpr functions and tuples of arguments; loops are unrolled statically.

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


@triton.constexpr_function
def half(n):
    return n // 2


@triton.jit
def peak_and_sum(x):
    peak = tl.max(x, axis=0)
    return peak, tl.sum(tl.exp(x - peak), axis=0)


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / 1.7
    peak, total = peak_and_sum(x)
    for part in tl.static_range(2):
        j = part * half(BLOCK) + tl.arange(0, half(BLOCK))
        y = tl.load(x_ptr + row * n + j, mask=j < n, other=float("-inf")) / 1.7
        tl.store(o_ptr + row * n + j, tl.exp(y - peak) / total, mask=j < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
