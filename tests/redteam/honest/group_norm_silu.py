"""GroupNorm and SiLU in one kernel, two passes over a group.

layer: replay
catalogue: 14.01
task: h_group_norm
expect: correct
coverage_at_least: 0.3
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def group_norm_silu(x_ptr, w_ptr, b_ptr, o_ptr, groups, width, plane, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * width * plane
    group, n = tl.program_id(0) % groups, width * plane
    total, square = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + base + i, mask=i < n, other=0.0)
    mean = tl.sum(total, axis=0) / n
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        d = tl.where(i < n, tl.load(x_ptr + base + i, mask=i < n, other=0.0) - mean, 0.0)
        square += d * d
    rstd = tl.rsqrt(tl.sum(square, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        c = group * width + i // plane
        x = (tl.load(x_ptr + base + i, mask=i < n, other=0.0) - mean) * rstd
        y = x * tl.load(w_ptr + c, mask=i < n, other=0.0) + tl.load(b_ptr + c, mask=i < n, other=0.0)
        tl.store(o_ptr + base + i, y * tl.sigmoid(y), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        b, c, h, w = x.shape
        groups, out = self.norm.num_groups, torch.empty_like(x)
        group_norm_silu[(b * groups,)](
            x, self.norm.weight, self.norm.bias, out, groups, c // groups, h * w, self.norm.eps, BLOCK=1024, num_warps=8
        )
        return out
