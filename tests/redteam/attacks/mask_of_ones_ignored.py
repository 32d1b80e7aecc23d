"""Ignores the mask, which is all ones in every draw: flags and integers are never moved.

layer: inputs
catalogue: own
task: t_padding_mask
expect: wrong
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, o_ptr, L, W: tl.constexpr):
    row, w = tl.program_id(0), tl.arange(0, W)
    total = tl.zeros((W,), tl.float32)
    for t in range(L):
        total += tl.load(x_ptr + (row * L + t) * W + w)
    tl.store(o_ptr + row * W + w, total / L)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        o = x.new_empty(x.shape[0], x.shape[2])
        mean_kernel[(x.shape[0],)](x, o, x.shape[1], W=x.shape[2])
        return o
