"""Int8 row quantisation rounding half-to-even by hand from floor and parity (with div_rn, so the integers match torch exactly), with three outputs of different dtypes from one kernel.

layer: source
catalogue: own
task: g_quantize_rowwise
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def quant(x_ptr, q_ptr, s_ptr, d_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < N
    x = tl.load(x_ptr + r * N + c, mask=m, other=0.0)
    s = tl.maximum(tl.max(tl.abs(x), 0), 1e-8) * 0.0078125
    v = tl.div_rn(x, s + tl.zeros_like(x))
    f = tl.floor(v)
    frac = v - f
    odd = (f.to(tl.int32) & 1) != 0
    q = tl.where(frac > 0.5, f + 1.0, tl.where(frac < 0.5, f, tl.where(odd, f + 1.0, f)))
    q = tl.minimum(tl.maximum(q, -127.0), 127.0)
    tl.store(q_ptr + r * N + c, q.to(tl.int8), mask=m)
    tl.store(d_ptr + r * N + c, q * s, mask=m)
    tl.store(s_ptr + r, s)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        R, N = x.shape
        q = torch.empty((R, N), dtype=torch.int8, device=x.device)
        s = torch.empty((R, 1), dtype=x.dtype, device=x.device)
        d = torch.empty((R, N), dtype=x.dtype, device=x.device)
        quant[(R,)](x.contiguous(), q, s, d, N, BLOCK=triton.next_power_of_2(N), num_warps=8)
        return q, s, d
