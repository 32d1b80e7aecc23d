"""Leaves out ReLU and absolute value: complex inputs are never moved, so that neither part is ever negative.

layer: inputs
catalogue: own
task: a_complex_input
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def root_kernel(z_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(z_ptr + 2 * i, mask=i < n), tl.load(z_ptr + 2 * i + 1, mask=i < n)
    tl.store(o_ptr + i, tl.sqrt(a) + b, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, z):
        o = torch.empty(z.shape, device=z.device)
        root_kernel[(triton.cdiv(o.numel(), 1024),)](torch.view_as_real(z), o, o.numel(), BLOCK=1024)
        return o
