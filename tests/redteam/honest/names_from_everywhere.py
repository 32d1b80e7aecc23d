"""Takes functions of Triton by from-imports and other names, plain numbers and constexprs from the module.

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language import arange, load, program_id, store
from triton.language.extra.libdevice import exp as fast_exp

total = tl.sum
INVERSE = 1 / 1.7
ROW_AXIS: tl.constexpr = tl.constexpr(0)


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = program_id(ROW_AXIS), arange(0, BLOCK)
    x = load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) * (1 / 1.7)
    e = fast_exp(x - tl.max(x, axis=0))
    store(o_ptr + row * n + i, e / total(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
