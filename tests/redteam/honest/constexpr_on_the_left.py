"""A global tl.constexpr stands left of the first product in a helper. Compiled Triton unwraps it; run as plain Python, the product is
wrapped in a constexpr itself, and a simulation that does not see to that refuses the kernel.

layer: source
catalogue: own
task: h_gelu_tanh_bias
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice

C = tl.constexpr(0.7978845608028654)


@triton.jit
def gelu_inner(x):
    return C * (x + 0.044715 * x * x * x)


@triton.jit
def gelu_tanh(x):
    return 0.5 * x * (1.0 + libdevice.tanh(gelu_inner(x)))


@triton.jit
def bias_gelu_residual(x_ptr, b_ptr, r_ptr, o_ptr, rows, cols, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 16)
    row = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.max_contiguous(tl.multiple_of(c, BLOCK), BLOCK)
    inside = (c < cols) & (row < rows)
    x = tl.load(x_ptr + row * cols + c, mask=inside, other=0.0, eviction_policy="evict_first")
    x += tl.load(b_ptr + c, mask=c < cols, other=0.0, eviction_policy="evict_last")
    y = gelu_tanh(x) + tl.load(r_ptr + row * cols + c, mask=inside, other=0.0)
    tl.store(o_ptr + row * cols + c, y, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))

    def forward(self, x, residual):
        out = torch.empty_like(x)
        rows, cols = x.shape
        grid = (triton.cdiv(cols, 1024), 4, triton.cdiv(rows, 4))
        bias_gelu_residual[grid](x, self.bias, residual, out, rows, cols, BLOCK=1024)
        return out
