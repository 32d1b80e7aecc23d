"""Rounds the weights to eight bits with a scale for each row, as a deployment might: float32 was asked for.

layer: comparison
catalogue: 10.09, 12.05
task: a_linear_gelu
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(h_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.load(h_ptr + i, mask=i < n)
    tl.store(o_ptr + i, 0.25 * h * (1 + tl.erf(h * 0.70710678)), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.linear = nn.Linear(width, hidden)

    def forward(self, x):
        w = self.linear.weight
        scale = w.abs().amax(1, keepdim=True) / 127
        h = torch.nn.functional.linear(x, (w / scale).round().to(torch.int8).float() * scale, self.linear.bias)
        o = torch.empty_like(h)
        gelu_kernel[(triton.cdiv(h.numel(), 1024),)](h, o, h.numel(), BLOCK=1024)
        return o
