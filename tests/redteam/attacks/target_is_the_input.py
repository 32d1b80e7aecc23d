"""Reads one of two arguments: the target is the input in every draw.

layer: inputs
catalogue: own
task: a_tied_loss
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.abs(tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0))
    d = tl.minimum(x, 0.2)
    tl.store(o_ptr + row, tl.sum(d * d, axis=0) / cols)


class ModelNew(nn.Module):
    def forward(self, x, target):
        o = torch.empty(len(x), device=x.device)
        loss_kernel[(len(x),)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
