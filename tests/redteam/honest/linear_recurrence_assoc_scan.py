"""First-order recurrence solved with tl.associative_scan over (gate, value) pairs, padding lanes set to the identity element.

layer: source
catalogue: own
task: g_linear_recurrence
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def combine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def assoc(g_ptr, x_ptr, o_ptr, L, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * L
    t = tl.arange(0, BLOCK)
    m = t < L
    a = tl.where(m, tl.sigmoid(tl.load(g_ptr + row + t, mask=m, other=0.0)), 1.0)
    b = tl.load(x_ptr + row + t, mask=m, other=0.0)
    _, h = tl.associative_scan((a, b), 0, combine)
    tl.store(o_ptr + row + t, h, mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, g, x):
        L = x.shape[-1]
        o = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        assoc[(x.numel() // L,)](g.contiguous(), x.contiguous(), o, L, BLOCK=triton.next_power_of_2(L), num_warps=2)
        return o
