"""A tensor subclass that comes with torch holds two tensors: each operator works on both and is metered once.

layer: profile
catalogue: own
task: a_attention
expect: unsupported
device: cpu
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch.testing._internal.two_tensor import TwoTensor


@triton.jit
def scale_kernel(x_ptr, o_ptr, n, s, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n) * s, mask=i < n)


def scale(x, s):
    o = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 4096),)](x, o, x.numel(), s, BLOCK=4096)
    return o


def library(q, k, v):
    return torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        q = scale(q, q.shape[-1] ** -0.5)
        h = q.shape[0] // 2
        o = library(*(TwoTensor(t[:h].clone(), t[h:].clone()) for t in (q, k, v)))
        return torch.cat([o.a, o.b])
