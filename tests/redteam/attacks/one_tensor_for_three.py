"""Reads one of the three arguments of attention: they are one tensor in every draw.

layer: inputs
catalogue: own
task: a_self_attention
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention_kernel(x_ptr, o_ptr, scale, L: tl.constexpr, W: tl.constexpr):
    at = tl.program_id(0) * L * W + tl.arange(0, L)[:, None] * W + tl.arange(0, W)[None, :]
    x = tl.load(x_ptr + at)
    s = tl.dot(x, tl.trans(x), input_precision="ieee") * scale
    e = tl.exp(s - tl.max(s, axis=1)[:, None])
    tl.store(o_ptr + at, tl.dot(e, x, input_precision="ieee") / tl.sum(e, axis=1)[:, None])


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        o = torch.empty_like(q)
        attention_kernel[(len(q),)](q, o, q.shape[-1] ** -0.5, L=q.shape[1], W=q.shape[2])
        return o
