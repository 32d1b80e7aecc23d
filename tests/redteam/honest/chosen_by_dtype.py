"""One kernel for half precision and one for the rest, chosen by the dtype of the input.

layer: inputs
catalogue: 3.09
task: h_rms_norm_half
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_half(x_ptr, w_ptr, o_ptr, n, eps, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0).to(tl.float32)
    y = (x * tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)).to(tl.float16)
    tl.store(o_ptr + row * n + i, y * tl.load(w_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def rms_any(x_ptr, w_ptr, o_ptr, n, eps, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(o_ptr + row * n + i, y * tl.load(w_ptr + i, mask=i < n), mask=i < n)


KERNELS = {torch.float16: rms_half, torch.float32: rms_any}


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols, dtype=torch.float16))

    def forward(self, x):
        out = torch.empty_like(x)
        rows, n = x.shape
        kernel = KERNELS.get(x.dtype, rms_any)
        kernel[(rows,)](x, self.weight, out, n, 1e-6, BLOCK=triton.next_power_of_2(n))
        return out
