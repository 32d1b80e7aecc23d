"""The body of the kernel works on the arrays behind the interpreter's values, which cost nothing there and do not exist
on a GPU.

layer: profile
catalogue: 9.14
task: a_softmax
expect: compile_error
device: cpu
"""

import numpy as np
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf"))
    x.handle.data = np.exp(x.handle.data) / np.exp(x.handle.data).sum()
    tl.store(o_ptr + row * n + i, x, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        sum_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
