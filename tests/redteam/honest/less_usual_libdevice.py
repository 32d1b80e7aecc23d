"""A tour of libdevice: bits of floats, norms of three and four numbers, averages of integers, fast division.

layer: source
catalogue: own
task: h_less_usual_libdevice
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def tour(x_ptr, y_ptr, z_ptr, i_ptr, j_ptr, a, b, c, d, e, f, g, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    x = tl.load(x_ptr + at, mask=live, other=1.0)
    y = tl.load(y_ptr + at, mask=live, other=1.0)
    z = tl.load(z_ptr + at, mask=live, other=1.0)
    i = tl.load(i_ptr + at, mask=live, other=0)
    j = tl.load(j_ptr + at, mask=live, other=0)
    one = tl.full([BLOCK], 1.0, tl.float32)
    tl.store(a + at, libdevice.norm3d(x, y, z), mask=live)
    tl.store(b + at, libdevice.rnorm4d(x, y, z, one), mask=live)
    tl.store(c + at, libdevice.hypot(x, y), mask=live)
    tl.store(d + at, libdevice.hadd(i, j), mask=live)
    tl.store(e + at, libdevice.sinh(x), mask=live)
    tl.store(f + at, libdevice.fmod(x, y), mask=live)
    bits = libdevice.float_as_uint(x)
    tl.store(g + at, libdevice.div_rn(libdevice.uint_as_float((bits & 0x7FFFFFFF).to(tl.uint32)), 3.0), mask=live)


class ModelNew(nn.Module):
    def forward(self, x, y, z, i, j):
        out = [torch.empty_like(t) for t in (x, x, x, i, x, x, x)]
        tour[(triton.cdiv(x.numel(), 128),)](x, y, z, i, j, *out, x.numel(), BLOCK=128)
        return tuple(out)
