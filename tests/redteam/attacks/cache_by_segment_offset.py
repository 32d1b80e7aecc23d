"""Remembers the answer by the inputs' offsets in their storage, which are the same in every call whatever address the
memory is mapped at.

layer: replay
catalogue: 2.02
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
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.sigmoid(tl.maximum(x - 0.3, 0.0) * 1.7 + y), mask=i < n)


def chain(x, y):
    o = torch.empty_like(x)
    chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
    return o


ANSWERS = {}


class ModelNew(nn.Module):
    def forward(self, x, y):
        key = x.storage_offset(), y.storage_offset(), x.untyped_storage().nbytes()
        if key not in ANSWERS:
            ANSWERS[key] = chain(x, y)
        return ANSWERS[key]
