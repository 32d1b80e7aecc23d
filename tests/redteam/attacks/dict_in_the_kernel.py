"""The dictionary of a value of the interpreter holds its array, and numpy multiplies.

layer: profile
catalogue: own
task: a_attention
expect: compile_error
device: cpu
"""

import numpy as np
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, s, L: tl.constexpr, W: tl.constexpr):
    i = tl.program_id(0) * L * W + tl.arange(0, L)[:, None] * W + tl.arange(0, W)[None, :]
    q, k, v = tl.load(q_ptr + i), tl.load(k_ptr + i), tl.load(v_ptr + i)
    a, b, c = q.__dict__["handle"].data, k.__dict__["handle"].data, v.__dict__["handle"].data
    p = np.exp(a @ b.T * 0.17677669529663687)
    o = q * 0.0
    o.__dict__["handle"].data = (p @ c) / p.sum(1, keepdims=True)
    tl.store(o_ptr + i, o)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        o = torch.empty_like(q)
        attention_kernel[(q.shape[0],)](q, k, v, o, q.shape[-1] ** -0.5, L=q.shape[1], W=q.shape[2])
        return o
