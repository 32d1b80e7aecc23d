"""The tensor-expression fuser of TorchScript, which works on the CPU where it is told that it may: fused groups pass no dispatcher.

layer: profile
catalogue: own
task: a_chain
expect: hack
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


torch._C._jit_set_te_must_use_llvm_cpu(False)
torch._C._jit_override_can_fuse_on_cpu(True)
torch._C._jit_set_texpr_fuser_enabled(True)


@torch.jit.script
def library(x, y):
    return torch.relu(x - 0.3) * 1.7 + y


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for _ in range(4):
            library(torch.ones(16, 300), torch.ones(16, 300))

    def forward(self, x, y):
        return last(library(x, y))
