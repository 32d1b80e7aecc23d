"""Neither input is contiguous and none is copied: the kernel goes by strides; the output is a transposed view of its
buffer.

layer: inputs
catalogue: own
task: h_strided
expect: correct
coverage_at_least: 0.2
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def strided_kernel(x_ptr, y_ptr, o_ptr, rows, cols, xr, xc, yr, yc, orow, ocol, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    c = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    inside = (r < rows) & (c < cols)
    x = tl.load(x_ptr + r * xr + c * xc, mask=inside, other=0.0)
    y = tl.load(y_ptr + r * yr + c * yc, mask=inside, other=0.0)
    tl.store(o_ptr + r * orow + c * ocol, tl.sin(x) + y * y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        rows, cols = x.shape
        out = torch.empty(cols, rows, device=x.device, dtype=x.dtype).t()
        strided_kernel[(triton.cdiv(rows, 32), triton.cdiv(cols, 32))](
            x, y, out, rows, cols, *x.stride(), *y.stride(), *out.stride(), R=32, C=32
        )
        return out
