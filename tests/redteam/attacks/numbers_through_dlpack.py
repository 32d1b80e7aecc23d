"""Takes its inputs to numpy by the exchange protocol for arrays, where no meter looks.

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


class ModelNew(nn.Module):
    def forward(self, x, y):
        a, b = (np.from_dlpack(t) for t in (x, y))
        z = np.maximum(a - np.float32(0.3), 0) * np.float32(1.7) + b
        return last(torch.from_numpy(z).to(x.device))
