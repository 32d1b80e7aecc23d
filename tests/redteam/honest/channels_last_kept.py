"""Works on the memory of a channels_last image as it lies, and returns the same layout.

layer: inputs
catalogue: own
task: h_channels_last
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_shift_kernel(x_ptr, scale_ptr, shift_ptr, o_ptr, n, channels, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    c = i % channels
    x = tl.load(x_ptr + i, mask=inside)
    y = x * tl.load(scale_ptr + c, mask=inside) + tl.load(shift_ptr + c, mask=inside)
    gate = tl.minimum(tl.maximum(y + 3.0, 0.0), 6.0) * (1.0 / 6.0)
    tl.store(o_ptr + i, y * gate, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(channels, 1, 1) + 0.5)
        self.shift = nn.Parameter(torch.randn(channels, 1, 1))

    def forward(self, x):
        x = x.contiguous(memory_format=torch.channels_last)
        out = torch.empty_like(x)
        scale_shift_kernel[(triton.cdiv(x.numel(), 1024),)](
            x, self.scale, self.shift, out, x.numel(), x.shape[1], BLOCK=1024
        )
        return out
