"""All operators but the last are in a function compiled by torch.jit.script: no Python sees them.

layer: profile
catalogue: 9.14, 9.08
task: a_chain
expect: hack, correct, unsupported, runtime_error, wrong
coverage_at_most: 0.4
speedup_at_most: 2.2
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


@torch.jit.script
def library(x, y):
    return torch.relu(x - 0.3) * 1.7 + y


class ModelNew(nn.Module):
    def forward(self, x, y):
        return last(library(x, y))
