"""In-place foreach operators return nothing, so that what they write is free.

layer: profile
catalogue: own
task: a_chain
expect: correct
speedup_at_most: 1.1
coverage_at_most: 0.25
device: cpu
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def last_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.sigmoid(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def last(x):
    o = torch.empty_like(x)
    last_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


class ModelNew(nn.Module):
    def forward(self, x, y):
        z = [x - 0.3]
        torch._foreach_clamp_min_(z, 0.0)
        torch._foreach_mul_(z, 1.7)
        torch._foreach_add_(z, [y])
        return last(z[0])
