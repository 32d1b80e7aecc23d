"""Leaves out weight and bias, which are ones and zeros after initialisation.

layer: dataset
catalogue: 1.15, 1.14
task: a_layernorm
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    x = tl.where(i < n, x - tl.sum(x, axis=0) / n, 0.0)
    tl.store(o_ptr + row * n + i, x / tl.sqrt(tl.sum(x * x, axis=0) / n + 1e-5), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        o = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
