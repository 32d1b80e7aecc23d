"""Divides by the expected sum of exponentials of normal numbers instead of the sum of the row: one pass, no reduction.

layer: comparison
catalogue: 1.10, 1.09
task: a_softmax
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def guess_kernel(x_ptr, o_ptr, total, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)) / total, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        guess_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.shape[1] * 1.6487, x.numel(), BLOCK=1024)
        return o
