"""The reference changes its input in place, this one leaves it as it was and only returns the right answer.

layer: inputs
catalogue: own
task: h_in_place
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_scale_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0)
    tl.store(o_ptr + i, x * 1.5, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
