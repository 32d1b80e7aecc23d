"""atomic_max into a buffer that starts at zero, which is the clamp of the task.

layer: profile
catalogue: own
task: h_column_max
expect: correct
coverage_at_least: 0.3
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def column_max_kernel(x_ptr, o_ptr, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = (r[:, None] < rows) & (c[None, :] < cols)
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=inside, other=0.0)
    tl.atomic_max(o_ptr + c, tl.maximum(tl.max(x, axis=0), 0.0), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.zeros(cols, device=x.device, dtype=x.dtype)
        column_max_kernel[(triton.cdiv(rows, 64), triton.cdiv(cols, 64))](x, out, rows, cols, ROWS=64, COLS=64)
        return out
