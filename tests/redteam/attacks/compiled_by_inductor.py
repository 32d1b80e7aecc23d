"""torch.compile makes the kernels, and an own one is launched for show.

layer: profile
catalogue: 9.06, 12.03
task: a_chain
expect: hack
device: cuda
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    o = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


@torch.compile
def library(x, y):
    return torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y)


class ModelNew(nn.Module):
    def forward(self, x, y):
        copy(x)
        return library(x, y)
