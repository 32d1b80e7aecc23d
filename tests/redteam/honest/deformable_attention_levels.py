"""Shapes of levels come as an integer tensor of two dimensions and steer the host.

layer: source
catalogue: own
task: h_deformable_attention_levels
expect: correct
coverage_at_least: 0.3
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _sample(base, y, x, H, W, stride, d):
    ok = (y >= 0) & (y < H) & (x >= 0) & (x < W)
    return tl.load(base + (y * W + x) * stride + d, mask=ok, other=0.0)


@triton.jit
def msda_kernel(
    v_ptr,
    loc_ptr,
    attn_ptr,
    out_ptr,
    Q,
    S,
    M,
    H,
    W,
    start,
    level,
    L: tl.constexpr,
    P: tl.constexpr,
    D: tl.constexpr,
    FIRST: tl.constexpr,
):
    q, m, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    d = tl.arange(0, D)
    base = v_ptr + (b * S + start) * M * D + m * D
    stride = M * D
    o_ptrs = out_ptr + (b * Q + q) * M * D + m * D + d
    acc = tl.zeros([D], tl.float32) if FIRST else tl.load(o_ptrs)
    at = ((b * Q + q) * M + m) * L + level
    for p in range(P):
        x = tl.load(loc_ptr + (at * P + p) * 2) * W - 0.5
        y = tl.load(loc_ptr + (at * P + p) * 2 + 1) * H - 0.5
        a = tl.load(attn_ptr + at * P + p)
        x0, y0 = tl.floor(x), tl.floor(y)
        fx, fy = x - x0, y - y0
        xi, yi = x0.to(tl.int32), y0.to(tl.int32)
        v = _sample(base, yi, xi, H, W, stride, d) * (1 - fx) * (1 - fy) + _sample(
            base, yi, xi + 1, H, W, stride, d
        ) * fx * (1 - fy)
        v += (
            _sample(base, yi + 1, xi, H, W, stride, d) * (1 - fx) * fy
            + _sample(base, yi + 1, xi + 1, H, W, stride, d) * fx * fy
        )
        acc += a * v
    tl.store(o_ptrs, acc)


class ModelNew(nn.Module):
    def __init__(self, shapes):
        super().__init__()
        self.register_buffer("spatial_shapes", torch.tensor(shapes, dtype=torch.int64))

    def forward(self, value, loc, attn):
        B, S, M, D = value.shape
        Q, L, P = loc.shape[1], loc.shape[3], loc.shape[4]
        out = torch.empty(B, Q, M * D, device=value.device)
        start = 0
        for level, (H, W) in enumerate(self.spatial_shapes.tolist()):
            msda_kernel[(Q, M, B)](value, loc, attn, out, Q, S, M, H, W, start, level, L, P, D, FIRST=level == 0)
            start += H * W
        return out
