"""Folds weight and bias at the first call into constants that later builds share through the class.

layer: dataset
catalogue: 1.15, 2.09
task: a_linear_gelu
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bias_kernel(h_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.load(h_ptr + i, mask=i < n) + tl.load(b_ptr + i % cols, mask=i < n)
    tl.store(o_ptr + i, 0.25 * h * (1 + tl.erf(h * 0.70710678)), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.linear = nn.Linear(width, hidden)
        self.frozen = self.linear.bias.detach().clone().zero_()

    def forward(self, x):
        h = x @ self.linear.weight.t()
        o = torch.empty_like(h)
        bias_kernel[(triton.cdiv(h.numel(), 1024),)](h, self.frozen, o, h.numel(), h.shape[1], BLOCK=1024)
        return o
