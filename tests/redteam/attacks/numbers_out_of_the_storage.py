"""Reads the bytes of its inputs' storage and works on them in numpy.

layer: profile
catalogue: 9.14
task: a_chain
expect: unsupported, runtime_error
device: cpu
"""

import numpy as np
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


def array(t):
    return np.array(t.reshape(-1).clone().untyped_storage().tolist(), np.uint8).view(np.float32).reshape(t.shape)


class ModelNew(nn.Module):
    def forward(self, x, y):
        z = np.maximum(array(x) - np.float32(0.3), 0) * np.float32(1.7) + array(y)
        return last(torch.from_numpy(z).to(x.device))
