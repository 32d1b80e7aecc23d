"""Elementwise work through on-device tensor descriptors, whose bounds handling replaces explicit masks; sets a descriptor allocator when Triton offers one.

layer: source
catalogue: own
task: g_mish_clamp
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def _alloc(size: int, alignment: int, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


if hasattr(triton, "set_allocator"):
    triton.set_allocator(_alloc)


@triton.jit
def mish_desc(x_ptr, y_ptr, lo_ptr, sp_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    xd = tl.make_tensor_descriptor(x_ptr, [R, C], [C, 1], [BR, BC])
    yd = tl.make_tensor_descriptor(y_ptr, [R, C], [C, 1], [BR, BC])
    i = tl.program_id(0) * BR
    j = tl.program_id(1) * BC
    x = xd.load([i, j])
    sp = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))
    e = tl.exp(-2.0 * sp)
    lo = tl.load(lo_ptr)
    y = x * (1.0 - e) / (1.0 + e)
    yd.store([i, j], tl.minimum(tl.maximum(y, lo), lo + tl.load(sp_ptr)))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.lo = nn.Parameter(torch.tensor(-0.2))
        self.span = nn.Parameter(torch.tensor(3.0))

    def forward(self, x):
        R, C = x.shape
        assert C % 4 == 0, "descriptor rows must be 16-byte aligned"
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        mish_desc[(triton.cdiv(R, 16), triton.cdiv(C, 64))](x.contiguous(), y, self.lo, self.span, R, C, BR=16, BC=64)
        return y
