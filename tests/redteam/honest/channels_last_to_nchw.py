"""Reads a channels_last image by its strides and returns an ordinary contiguous tensor: the same values in another
layout.

layer: comparison
catalogue: own
task: h_channels_last
expect: correct
coverage_at_least: 0.1
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_shift_kernel(
    x_ptr, scale_ptr, shift_ptr, o_ptr, channels, height, width, sn, sc, sh, sw, BLOCK: tl.constexpr
):
    image, c, i = tl.program_id(0) // channels, tl.program_id(0) % channels, tl.arange(0, BLOCK)
    i += tl.program_id(1) * BLOCK
    inside = i < height * width
    x = tl.load(x_ptr + image * sn + c * sc + (i // width) * sh + (i % width) * sw, mask=inside)
    y = x * tl.load(scale_ptr + c) + tl.load(shift_ptr + c)
    y = y * tl.minimum(tl.maximum(y + 3.0, 0.0), 6.0) * (1.0 / 6.0)
    tl.store(o_ptr + tl.program_id(0) * height * width + i, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(channels, 1, 1) + 0.5)
        self.shift = nn.Parameter(torch.randn(channels, 1, 1))

    def forward(self, x):
        b, c, h, w = x.shape
        out = torch.empty(x.shape, device=x.device, dtype=x.dtype)
        scale_shift_kernel[(b * c, triton.cdiv(h * w, 512))](
            x, self.scale, self.shift, out, c, h, w, *x.stride(), BLOCK=512
        )
        return out
