"""A settings object of the candidate's own is called tl, and one of its attributes is set; Triton's language has another
name here. A look that goes by names takes it for patching of Triton.

layer: source
catalogue: own
task: h_gelu_scale
expect: correct
coverage_at_least: 0.9
"""

import torch
from torch import nn
from triton import cdiv, jit
from triton import language as T


@jit
def fused_kernel(x_ptr, g_ptr, scale_ptr, shift_ptr, o_ptr, n, cols, BLOCK: T.constexpr):
    i = T.program_id(0) * BLOCK + T.arange(0, BLOCK)
    inside = i < n
    x = T.load(x_ptr + i, mask=inside)
    g = T.load(g_ptr + i, mask=inside)
    y = 0.5 * x * (1.0 + T.erf(x * 0.7071067811865476))
    y = y * T.load(scale_ptr + i % cols, mask=inside) + T.load(shift_ptr + i % cols, mask=inside)
    T.store(o_ptr + i, y * T.sigmoid(g), mask=inside)


class Tile:
    length = 256


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(cols) + 0.5)
        self.shift = nn.Parameter(torch.randn(cols))

    def forward(self, x, gate):
        tl = Tile()
        if x.numel() > 100_000:
            tl.length = 1024
        out = torch.empty_like(x)
        grid = (cdiv(x.numel(), tl.length),)
        fused_kernel[grid](x, gate, self.scale, self.shift, out, x.numel(), x.shape[-1], BLOCK=tl.length)
        return out
