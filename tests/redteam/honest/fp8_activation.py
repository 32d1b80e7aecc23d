"""Rounds activations to float8 e5m2 and back in the kernel, as the task does by torch.

layer: comparison
catalogue: own
task: h_fp8_activation
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def through_fp8(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, x.to(tl.float8e5).to(tl.float32) * 0.5, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        through_fp8[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), BLOCK=256)
        return o
