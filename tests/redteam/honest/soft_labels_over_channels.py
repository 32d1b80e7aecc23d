"""Cross-entropy of images against soft labels over channels, which add up to one: the kernel uses that.

layer: inputs
catalogue: own
task: h_soft_labels_over_channels
expect: correct
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def soft_ce(x_ptr, y_ptr, o_ptr, n, HW, C: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr):
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    c = tl.arange(0, BC)
    at = (p // HW * C * HW + p % HW)[:, None] + c[None, :] * HW
    live = (p < n)[:, None] & (c < C)[None, :]
    x = tl.load(x_ptr + at, mask=live, other=-1e30)
    y = tl.load(y_ptr + at, mask=live, other=0.0)
    top = tl.max(x, 1)
    lse = top + tl.log(tl.sum(tl.exp(x - top[:, None]), 1))
    tl.store(o_ptr + p, lse - tl.sum(x * y, 1), mask=p < n)  # the labels add up to one


class ModelNew(nn.Module):
    def forward(self, x, y):
        B, C, H, W = x.shape
        o = x.new_empty(B, H, W)
        soft_ce[(triton.cdiv(o.numel(), 16),)](x, y, o, o.numel(), H * W, C=C, BC=triton.next_power_of_2(C), BP=16)
        return o
