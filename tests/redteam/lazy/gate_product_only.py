"""Everything but the last product of two tensors is the library's.

layer: laziness
catalogue: own
task: h_gelu_scale
expect: correct
coverage_at_most: 0.45
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def product_kernel(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + i, mask=i < n, other=0.0), tl.load(b_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, a * b, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(cols) + 0.5)
        self.shift = nn.Parameter(torch.randn(cols))

    def forward(self, x, gate):
        y, g = F.gelu(x) * self.scale + self.shift, torch.sigmoid(gate)
        out = torch.empty_like(y)
        product_kernel[(triton.cdiv(y.numel(), 1024),)](y, g, out, y.numel(), BLOCK=1024)
        return out
