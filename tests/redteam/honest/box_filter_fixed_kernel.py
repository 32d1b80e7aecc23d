"""A box filter whose fixed weights of one, a buffer of the model, are written out in the kernel.

layer: source
catalogue: own
task: h_box_filter_fixed_kernel
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def local_contrast(x_ptr, y_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr, R: tl.constexpr):
    plane = tl.program_id(2)
    h = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    w = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    base = x_ptr + plane * H * W
    s = tl.zeros((BH, BW), tl.float32)
    for dh in tl.static_range(-R, R + 1):
        for dw in tl.static_range(-R, R + 1):
            hh, ww = h + dh, w + dw
            s += tl.load(base + hh * W + ww, mask=(hh >= 0) & (hh < H) & (ww >= 0) & (ww < W), other=0.0)
    inside = (h < H) & (w < W)
    x = tl.load(base + h * W + w, mask=inside, other=0.0)
    tl.store(y_ptr + plane * H * W + h * W + w, x - s / ((2 * R + 1) * (2 * R + 1)), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, c):
        super().__init__()

    def forward(self, x):
        B, C, H, W = x.shape
        y = torch.empty_like(x)
        local_contrast[(triton.cdiv(H, 16), triton.cdiv(W, 64), B * C)](x, y, H, W, 16, 64, 2)
        return y
