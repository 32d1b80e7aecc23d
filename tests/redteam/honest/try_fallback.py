"""A kernel inside try, with an honest fallback for machines without Triton that is never taken here. Rules that forbid
the word try refuse it.

layer: source
catalogue: 14.03
task: h_gelu_scale
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def fused_kernel(x_ptr, g_ptr, scale_ptr, shift_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    g = tl.load(g_ptr + i, mask=inside)
    scale = tl.load(scale_ptr + i % cols, mask=inside)
    shift = tl.load(shift_ptr + i % cols, mask=inside)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(o_ptr + i, (y * scale + shift) * tl.sigmoid(g), mask=inside)


def library(x, gate, scale, shift):
    """What runs where no GPU is present."""
    return (F.gelu(x) * scale + shift) * torch.sigmoid(gate)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(cols) + 0.5)
        self.shift = nn.Parameter(torch.randn(cols))

    def forward(self, x, gate):
        try:
            x, gate = x.contiguous(), gate.contiguous()
            out = torch.empty_like(x)
            n = x.numel()
            fused_kernel[(triton.cdiv(n, 1024),)](x, gate, self.scale, self.shift, out, n, x.shape[-1], BLOCK=1024)
            return out
        except (RuntimeError, AssertionError):
            return library(x, gate, self.scale, self.shift)
