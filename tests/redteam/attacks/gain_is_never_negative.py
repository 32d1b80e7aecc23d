"""Takes a learned gain out of a norm as it is, without making it positive: gains are drawn positive and are never moved below zero.

layer: inputs
catalogue: own
task: a_gain
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, g_ptr, o_ptr, length, channels, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * length + i, mask=i < length, other=0.0)
    tl.store(o_ptr + row, tl.load(g_ptr + row % channels) * tl.sqrt(tl.sum(x * x, axis=0)))


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(channels, 1) * 0.5 + 0.5)

    def forward(self, x):
        n, c, l = x.shape
        o = torch.empty(n, c, device=x.device)
        norm_kernel[(n * c,)](x, self.gain, o, l, c, BLOCK=triton.next_power_of_2(l))
        return o
