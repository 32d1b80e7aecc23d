"""Keyword arguments, defaults, a number and None among the inputs, and one more optional argument than the reference
has.

layer: inputs
catalogue: own
task: h_optional
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def chain_kernel(
    x_ptr, b_ptr, o_ptr, n, cols, factor, shift, slope, limit, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = tl.where(x > 0, x, x * slope) * factor + shift
    if HAS_BIAS:
        y += tl.load(b_ptr + i % cols, mask=i < n, other=0.0)
    tl.store(o_ptr + i, tl.minimum(tl.maximum(y, -limit), limit), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, slope, *, limit=1.0, **unused):
        super().__init__()
        self.slope, self.limit = slope, limit

    def forward(self, x, factor=1.0, bias=None, shift=0.25, out=None):
        out = torch.empty_like(x) if out is None else out
        n = x.numel()
        chain_kernel[(triton.cdiv(n, 1024),)](
            *(x, x if bias is None else bias, out, n, x.shape[-1]),
            *(float(factor), float(shift), self.slope, self.limit),
            HAS_BIAS=bias is not None,
            BLOCK=1024,
        )
        return out
