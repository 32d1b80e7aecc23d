"""Library calls that only make room or change the form (zeros, cat of views, permute, reshape, contiguous) stand around
one kernel that does the work.

layer: laziness
catalogue: own
task: h_group_norm
expect: correct
coverage_at_least: 0.3
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rows_norm_kernel(x_ptr, o_ptr, n, eps, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    row = row.to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    square = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x_ptr + row * n + start + i, mask=start + i < n, other=0.0)
    mean = tl.sum(total, axis=0) / n
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + i, mask=start + i < n, other=0.0)
        d = tl.where(start + i < n, x - mean, 0.0)
        square += d * d
    rstd = tl.rsqrt(tl.sum(square, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + i, mask=start + i < n, other=0.0)
        tl.store(o_ptr + row * n + start + i, (x - mean) * rstd, mask=start + i < n)


@triton.jit
def affine_silu_kernel(y_ptr, w_ptr, b_ptr, n, channels, plane, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = (i // plane) % channels
    y = tl.load(y_ptr + i, mask=i < n, other=0.0)
    y = y * tl.load(w_ptr + c, mask=i < n, other=0.0) + tl.load(b_ptr + c, mask=i < n, other=0.0)
    tl.store(y_ptr + i, y * tl.sigmoid(y), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        b, c, h, w = x.shape
        rows = x.contiguous().view(b * self.norm.num_groups, -1)
        y = torch.zeros_like(rows)
        rows_norm_kernel[(rows.shape[0],)](rows, y, rows.shape[1], self.norm.eps, BLOCK=1024)
        y = y.reshape(b, c, h, w)
        affine_silu_kernel[(triton.cdiv(y.numel(), 1024),)](
            y, self.norm.weight, self.norm.bias, y.numel(), c, h * w, BLOCK=1024
        )
        return y.permute(0, 2, 3, 1).permute(0, 3, 1, 2)
