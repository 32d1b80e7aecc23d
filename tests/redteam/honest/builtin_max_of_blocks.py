"""Python's max and min stand between blocks, which Triton reads as maximum and minimum (with a warning).

layer: source
catalogue: own
task: h_builtin_max_of_blocks
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_minus_min(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = tl.load(y_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, max(x, 0.0) - min(x, y), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        relu_minus_min[(triton.cdiv(x.numel(), 256),)](x, y, o, x.numel(), BLOCK=256)
        return o
