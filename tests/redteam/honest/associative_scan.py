"""A linear recurrence by tl.associative_scan over pairs, where the reference walks in a loop.

layer: clock
catalogue: own
task: h_decay
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def combine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence_kernel(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    a = tl.sigmoid(tl.load(a_ptr + row * n + i, mask=i < n, other=0.0))
    b = tl.load(b_ptr + row * n + i, mask=i < n, other=0.0)
    _, h = tl.associative_scan((a, b), 0, combine)
    tl.store(o_ptr + row * n + i, h, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(b)
        rows, n = b.shape
        recurrence_kernel[(rows,)](a, b, out, n, BLOCK=triton.next_power_of_2(n))
        return out
