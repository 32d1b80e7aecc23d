"""Works on pairs of numbers and returns them as complex ones.

layer: comparison
catalogue: own
task: h_rotary
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rotate_kernel(x_ptr, a_ptr, o_ptr, n, SIGN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    re, im = tl.load(x_ptr + 2 * i, mask=mask), tl.load(x_ptr + 2 * i + 1, mask=mask)
    a = tl.load(a_ptr + i, mask=mask)
    c, s = tl.cos(a), tl.sin(a)
    tl.store(o_ptr + 2 * i, re * c - im * s, mask=mask)
    tl.store(o_ptr + 2 * i + 1, SIGN * (re * s + im * c), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, angle):
        o = torch.empty_like(x)
        rotate_kernel[(triton.cdiv(angle.numel(), 1024),)](x, angle, o, angle.numel(), SIGN=-1, BLOCK=1024)
        return torch.view_as_complex(o)
