"""The convolution is the library's, the activation a kernel.

layer: laziness
catalogue: own
task: h_conv
expect: correct
coverage_at_most: 0.7
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def leaky_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, tl.where(x > 0, x, 0.1 * x), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x):
        y = self.conv(x)
        out = torch.empty_like(y)
        leaky_kernel[(triton.cdiv(y.numel(), 1024),)](y, out, y.numel(), BLOCK=1024)
        return out
