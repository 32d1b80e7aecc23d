"""Two floats come as a tensor and go to the kernel as numbers, by tolist().

layer: source
catalogue: own
task: h_numbers_by_tolist
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def axpb(x_ptr, o_ptr, a, b, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n) * a + b, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, ab):
        a, b = ab.tolist()
        o = torch.empty_like(x)
        axpb[(triton.cdiv(x.numel(), 256),)](x, o, a, b, x.numel(), BLOCK=256)
        return o
