"""A layer norm without its epsilon: a line that is nearly constant comes out many times too large.

layer: comparison
catalogue: 3.06, own
task: a_layernorm
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, w_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + r * n + i, mask=m, other=0.0)
    mean = tl.sum(x, axis=0) / n
    d = tl.where(m, x - mean, 0.0)
    y = d * tl.rsqrt(tl.sum(d * d, axis=0) / n)
    tl.store(o_ptr + r * n + i, y * tl.load(w_ptr + i, mask=m) + tl.load(b_ptr + i, mask=m), mask=m)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        o = torch.empty_like(x)
        k[(x.shape[0],)](x, self.norm.weight, self.norm.bias, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
