"""Writes its input back a little larger, by less than the tolerance, in every call: after a thousand calls the caller's data is a twentieth off.

layer: inputs
catalogue: own
task: a_chain
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def chain_kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    z = tl.maximum(x - 0.3, 0.0) * 1.7 + tl.load(y_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.sigmoid(z), mask=i < n)
    tl.store(x_ptr + i, x * 1.00005, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
        return o
