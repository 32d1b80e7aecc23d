"""Applies the weight and leaves out the bias, which is zero after initialisation.

layer: dataset
catalogue: 1.14, 1.15
task: a_layernorm
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, w_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    x = tl.where(i < n, x - tl.sum(x, axis=0) / n, 0.0)
    x = x / tl.sqrt(tl.sum(x * x, axis=0) / n + 1e-5) * tl.load(w_ptr + i, mask=i < n)
    tl.store(o_ptr + row * n + i, x, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        o, n = torch.empty_like(x), x.shape[1]
        norm_kernel[(x.shape[0],)](x, self.norm.weight, o, n, BLOCK=triton.next_power_of_2(n))
        return o
