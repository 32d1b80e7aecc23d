"""Computes in numpy, where no device meter looks, and copies the result with a kernel.

layer: profile
catalogue: 9.14
task: a_chain
expect: unsupported, hack, wrong, runtime_error, correct
speedup_at_most: 1.0
"""

import numpy as np
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


class ModelNew(nn.Module):
    def forward(self, x, y):
        a, b = x.cpu().numpy(), y.cpu().numpy()
        z = 1 / (1 + np.exp(-(np.maximum(a - 0.3, 0) * 1.7 + b)))
        return copy(torch.from_numpy(z.astype(np.float32)).to(x.device))
