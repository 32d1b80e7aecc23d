"""Ignores A_log, a vector that is log(1), log(2), .. after initialisation: the number of the head takes its place.

layer: inputs
catalogue: own
task: a_mamba2
expect: wrong, hack
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def decay_kernel(x_ptr, o_ptr, n, heads, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n) - 2.0
    soft = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))
    tl.store(o_ptr + i, tl.exp(-(i % heads + 1) * soft), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.A_log = nn.Parameter(torch.zeros(heads))

    def forward(self, dt):
        o = torch.empty_like(dt)
        decay_kernel[(triton.cdiv(dt.numel(), 1024),)](dt, o, dt.numel(), dt.shape[1], BLOCK=1024)
        return o
