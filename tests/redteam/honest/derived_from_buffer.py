"""A reciprocal is derived in the constructor from a registered buffer: it must see the buffer's real values, whichever
way they were registered.

layer: replay
catalogue: 2.09
task: h_affine_buffer
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tanh_affine_kernel(x_ptr, r_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = x * tl.load(r_ptr + i % cols, mask=i < n, other=0.0) + tl.load(b_ptr + i % cols, mask=i < n, other=0.0)
    tl.store(o_ptr + i, 2.0 * tl.sigmoid(2.0 * y) - 1.0, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.register_buffer("scale", torch.ones(cols))
        self.register_parameter("bias", nn.Parameter(torch.zeros(cols)))
        self.register_buffer("reciprocal", 1.0 / self.scale, persistent=False)

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        tanh_affine_kernel[(triton.cdiv(n, 1024),)](x, self.reciprocal, self.bias, out, n, x.shape[1], BLOCK=1024)
        return out
