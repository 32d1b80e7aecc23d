"""Grids of two and three dimensions, a tuple and a function, swizzled program numbers, debug barriers, hints.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, rows, n, BLOCK: tl.constexpr):
    a, b = tl.swizzle2d(tl.program_id(1), tl.program_id(2), tl.num_programs(1), tl.num_programs(2), 2)
    row = a * tl.num_programs(2) + b
    tl.debug_barrier()
    if row >= rows:
        return
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), 8), 8)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"), eviction_policy="evict_first")
    x = tl.cast(x, tl.float32) / 1.7
    e = tl.exp2((x - tl.max(x, axis=0)) * 1.4426950408889634)
    tl.store(o_ptr + row * n + i, tl.fdiv(e, tl.sum(e, axis=0)), mask=i < n, cache_modifier=".wb")


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        grid = lambda meta: (1, triton.cdiv(x.shape[0], 3), 3)  # noqa: E731
        softmax_kernel[grid](x, o, *x.shape, BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
