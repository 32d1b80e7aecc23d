"""Causal depthwise conv done directly in (B,L,D) layout with static_range over taps, its output a contiguous tensor where the reference gives a transposed view.

layer: source
catalogue: own
task: g_depthwise_conv1d
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dwconv(x_ptr, w_ptr, b_ptr, y_ptr, L, D, KW: tl.constexpr, BL: tl.constexpr, BD: tl.constexpr):
    b = tl.program_id(2)
    l = tl.program_id(0) * BL + tl.arange(0, BL)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    dm = d < D
    acc = tl.zeros((BL, BD), tl.float32) + tl.load(b_ptr + d, mask=dm, other=0.0)[None, :]
    for j in tl.static_range(KW):
        src = l - (KW - 1) + j
        w = tl.load(w_ptr + d * KW + j, mask=dm, other=0.0)
        x = tl.load(
            x_ptr + (b * L + src[:, None]) * D + d[None, :],
            mask=(src[:, None] >= 0) & (src[:, None] < L) & dm[None, :],
            other=0.0,
        )
        acc += x * w[None, :]
    acc = acc * tl.sigmoid(acc)
    tl.store(y_ptr + (b * L + l[:, None]) * D + d[None, :], acc, mask=(l[:, None] < L) & dm[None, :])


class ModelNew(nn.Module):
    def __init__(self, dim, k):
        super().__init__()
        self.k = k
        self.conv = nn.Conv1d(dim, dim, k, groups=dim, padding=k - 1)

    def forward(self, x):
        B, L, D = x.shape
        x = x.contiguous()
        y = torch.empty_like(x)
        dwconv[(triton.cdiv(L, 32), triton.cdiv(D, 64), B)](
            x, self.conv.weight, self.conv.bias, y, L, D, KW=self.k, BL=32, BD=64
        )
        return y
