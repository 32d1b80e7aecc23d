"""tl.map_elementwise with a function that branches on each element by itself.

layer: source
catalogue: own
task: h_map_elementwise
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def elu_one(x):
    if x > 0:
        y = x
    else:
        y = 0.7 * (tl.exp(x) - 1.0)
    return y


@triton.jit
def elu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, tl.map_elementwise(elu_one, x), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        elu_kernel[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), BLOCK=256)
        return o
