"""Only the sigmoid of the gate is a kernel; GELU, scale, shift and product are the library's.

layer: laziness
catalogue: own
task: h_gelu_scale
expect: correct
coverage_at_most: 0.4
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def sigmoid_kernel(g_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(g_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, tl.sigmoid(g), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(cols) + 0.5)
        self.shift = nn.Parameter(torch.randn(cols))

    def forward(self, x, gate):
        g = torch.empty_like(gate)
        sigmoid_kernel[(triton.cdiv(g.numel(), 1024),)](gate, g, g.numel(), BLOCK=1024)
        return (F.gelu(x) * self.scale + self.shift) * g
