"""Short rows go to a kernel that holds a row, long rows to one that walks over it: specialisation by shape with a
general way for all others.

layer: inputs
catalogue: 3.09
task: h_softmax
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def short_rows(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def long_rows(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + lanes
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=-1e30) / 1.7
        higher = tl.maximum(top, x)
        total = total * tl.exp(top - higher) + tl.exp(x - higher)
        top = higher
    best = tl.max(top, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp(top - best), axis=0)
    for start in range(0, n, BLOCK):
        i = start + lanes
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=-1e30) / 1.7
        tl.store(o_ptr + row * n + i, tl.exp(x - best) * scale, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, n = x.shape
        if n <= 1024:
            short_rows[(rows,)](x, out, n, BLOCK=triton.next_power_of_2(n))
        else:
            long_rows[(rows,)](x, out, n, BLOCK=1024)
        return out
