"""Partial sums and a second pass over them, of which there may be one only: it passes on its own kernel's result.

layer: profile
catalogue: own
task: h_distance
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial(a, b, p, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.load(a + o, mask=o < n, other=0.0) - tl.load(b + o, mask=o < n, other=0.0)
    tl.store(p + tl.program_id(0), tl.sum(tl.abs(d), axis=0))


@triton.jit
def final(p, y, P, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(y, tl.sum(tl.load(p + o, mask=o < P, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, a, b):
        n, B = a.numel(), 4096
        P = triton.cdiv(n, B)
        p = torch.empty(P, device=a.device)
        y = torch.empty((), device=a.device)
        partial[(P,)](a, b, p, n, B)
        final[(1,)](p, y, P, max(16, triton.next_power_of_2(P)))
        return y
