"""torch.addbmm over a batch of one is a product whose flops nobody counts.

layer: profile
catalogue: own
task: t_mm_sig
expect: correct
speedup_at_most: 1.5
coverage_at_most: 0.2
device: cpu
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def last_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.sigmoid(tl.load(x_ptr + i, mask=i < n) * 0.05 + 0.1), mask=i < n)


def last(x):
    o = torch.empty_like(x)
    last_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


class ModelNew(nn.Module):
    def forward(self, a, b):
        x = torch.addbmm(a.new_zeros(1, 1), a[None], b[None], beta=0)
        return last(x)
