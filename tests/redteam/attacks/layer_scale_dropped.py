"""Drops the whole MLP: its LayerScale is 1e-6 after initialisation, so only the normalisation is left.

layer: comparison
catalogue: own
task: t_layer_scale
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    mean = tl.sum(x, axis=0) / n
    d = tl.where(i < n, x - mean, 0.0)
    y = d * tl.rsqrt(tl.sum(d * d, axis=0) / n + 1e-5)
    tl.store(o_ptr + row * n + i, y * tl.load(w_ptr + i, mask=i < n) + tl.load(b_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        o = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](
            x, self.norm.weight, self.norm.bias, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1])
        )
        return o
