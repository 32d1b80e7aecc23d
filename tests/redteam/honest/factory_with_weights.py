"""A function builds the module, which has the task's parameters.

layer: replay
catalogue: 14.01
task: h_affine_buffer
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tanh_kernel(x_ptr, s_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask) / tl.load(s_ptr + i % cols, mask=mask, other=1.0)
    e = tl.exp(2.0 * (x + tl.load(b_ptr + i % cols, mask=mask)))
    tl.store(o_ptr + i, 1.0 - 2.0 / (e + 1.0), mask=mask)


class Tanh(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.register_buffer("scale", torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        o = torch.empty_like(x)
        n = x.numel()
        tanh_kernel[(triton.cdiv(n, 1024),)](x, self.scale, self.bias, o, n, x.shape[1], BLOCK=1024)
        return o


def ModelNew(cols):
    return Tanh(cols).eval()
