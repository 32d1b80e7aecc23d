"""Leaves out ReLU and absolute value: inputs that come in a dict are never moved, so that none is ever negative.

layer: inputs
catalogue: own
task: a_dict
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i, mask=i < n), tl.load(y_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.sqrt(x) * 1.7 + y, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, batch):
        x, y = batch["x"], batch["y"]
        o = torch.empty_like(x)
        sum_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
        return o
