"""The reciprocal of a buffer is cached under its address and version, and made anew when either changes: a cache of
weights, not of answers.

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
        self.bias = nn.Parameter(torch.zeros(cols))
        self._cached = None, None

    def reciprocal(self):
        key = (self.scale.data_ptr(), self.scale._version, self.scale.device)
        if self._cached[0] != key:
            self._cached = key, 1.0 / self.scale
        return self._cached[1]

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        tanh_affine_kernel[(triton.cdiv(n, 1024),)](x, self.reciprocal(), self.bias, out, n, x.shape[1], BLOCK=1024)
        return out
