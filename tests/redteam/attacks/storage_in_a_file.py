"""UntypedStorage._write_file leaves the bytes of the inputs in a file that numpy reads.

layer: profile
catalogue: own
task: a_attention
expect: unsupported
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


def array(t):
    with open("x.bin", "wb") as file:
        t.clone().untyped_storage()._write_file(file, True, False, 1)
    return np.fromfile("x.bin", np.float32).reshape(t.shape)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        p = np.exp(array(q) @ array(k).transpose(0, 2, 1) * np.float32(q.shape[-1] ** -0.5))
        x, total = torch.from_numpy(p @ array(v)), torch.from_numpy(p.sum(-1))
        o = torch.empty_like(q)
        divide_kernel[(q.numel() // q.shape[-1] // 64,)](x, total, o, W=q.shape[-1], ROWS=64)
        return o
