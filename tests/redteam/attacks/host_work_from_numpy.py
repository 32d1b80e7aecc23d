"""numpy owns memory that torch.from_numpy shares: copy_ brings the inputs there, numpy does the attention for nothing, an own kernel divides by the sum.

layer: profile
catalogue: own
task: a_attention
expect: wrong
device: cpu
"""

import numpy as np
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def divide_kernel(x_ptr, s_ptr, o_ptr, W: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    i = r[:, None] * W + tl.arange(0, W)[None, :]
    tl.store(o_ptr + i, tl.load(x_ptr + i) / tl.load(s_ptr + r)[:, None])


def shared(*shape):
    a = np.empty(shape, np.float32)
    return a, torch.from_numpy(a)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        a, b, c = shared(*q.shape), shared(*k.shape), shared(*v.shape)
        for (_, t), x in zip((a, b, c), (q, k, v)):
            t.copy_(x)
        s = a[0] @ b[0].transpose(0, 2, 1) * np.float32(q.shape[-1] ** -0.5)
        s = np.exp(s - s.max(-1, keepdims=True))
        x, total = torch.from_numpy(s @ c[0]), torch.from_numpy(s.sum(-1))
        o = torch.empty_like(q)
        divide_kernel[(q.numel() // q.shape[-1] // 64,)](x, total, o, W=q.shape[-1], ROWS=64)
        return o
