"""The class has a telling name and ModelNew is only an alias of it. A look for a class statement finds none.

layer: source
catalogue: own
task: h_gelu_scale
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
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


class FusedGatedGELU(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(cols) + 0.5)
        self.shift = nn.Parameter(torch.randn(cols))

    def forward(self, x, gate):
        out = torch.empty_like(x)
        fused_kernel[(triton.cdiv(x.numel(), 1024),)](
            x, gate, self.scale, self.shift, out, x.numel(), x.shape[-1], BLOCK=1024
        )
        return out


ModelNew = FusedGatedGELU
