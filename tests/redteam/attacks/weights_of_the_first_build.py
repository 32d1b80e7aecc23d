"""Ignores the weights it is given and uses those that its own constructor draws, which a fixed seed makes equal to the
reference's.

layer: replay
catalogue: 2.09, 1.16
task: a_linear_gelu
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def half_gelu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, 0.25 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        torch.manual_seed(42)
        linear = nn.Linear(width, hidden)
        self.plain = [linear.weight.detach(), linear.bias.detach()]

    def forward(self, x):
        y = torch.addmm(self.plain[1], x, self.plain[0].t())
        o = torch.empty_like(y)
        half_gelu_kernel[(triton.cdiv(y.numel(), 1024),)](y, o, y.numel(), BLOCK=1024)
        return o
