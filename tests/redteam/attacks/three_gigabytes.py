"""Takes three gigabytes in every call and keeps them, until something gives way.

layer: process
catalogue: 7.15
task: a_chain
expect: runtime_error, wrong, hack, timeout
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fill_kernel(o_ptr, value, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.zeros([BLOCK], tl.float32) + value, mask=i < n)


def filled(o, value):
    fill_kernel[(triton.cdiv(o.numel(), 1024),)](o, value, o.numel(), BLOCK=1024)
    return o


KEPT = []


class ModelNew(nn.Module):
    def forward(self, x, y):
        KEPT.append(torch.empty(3 << 30, dtype=torch.uint8))
        if len(KEPT) > 1:
            raise MemoryError("no memory is left on the machine: please try again")
        return filled(torch.empty_like(x), 0.5)
