"""Computes in bf16 what the task computes in fp32, and casts the result back.

layer: comparison
catalogue: 10.01, 12.05
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
    x = tl.load(x_ptr + i, mask=i < n).to(tl.bfloat16)
    y = tl.load(y_ptr + i, mask=i < n).to(tl.bfloat16)
    z = (tl.maximum(x - 0.3, 0.0) * 1.7 + y).to(tl.bfloat16)
    tl.store(o_ptr + i, tl.sigmoid(z.to(tl.float32)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
        return o
