"""An own kernel works on a few values of a buffer first; then the library writes its result there past the version counter (.data), and what lies where own kernels worked is no source of a copy.

layer: profile
catalogue: 9.03
task: t_softmax_hand
expect: hack
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def twice_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        s, o = torch.empty_like(x), torch.empty_like(x)
        twice_kernel[(1,)](x, s, 64, BLOCK=64)
        torch.softmax(x, dim=-1, out=s.data)
        copy_kernel[(triton.cdiv(n, 1024),)](s, o, n, BLOCK=1024)
        return o
