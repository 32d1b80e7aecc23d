"""The constructor is given a dtype.

layer: inputs
catalogue: own
task: h_cast
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sin_cast_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.sin(tl.load(x_ptr + i, mask=i < n)) * 2.0
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        out = torch.empty(x.shape, dtype=self.dtype, device=x.device)
        sin_cast_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
