"""Returns float16 where float32 is expected: half the bytes are written, and a comparison after a cast does not see
it.

layer: comparison
catalogue: 14.16, 10.01
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
    tl.store(o_ptr + i, tl.sigmoid(tl.maximum(x - 0.3, 0.0) * 1.7 + y).to(tl.float16), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x, dtype=torch.float16)
        chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
        return o
