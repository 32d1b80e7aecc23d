"""The docstring of the kernel holds the reference in Python, with a line that starts with def.

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, temperature, BLOCK: tl.constexpr):
    """One row a program. In Python:

    def softmax(x):
        e = exp(x - max(x))
        return e / sum(e)
    """
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / temperature
    e = tl.exp(x - tl.max(x, 0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, 0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, o, x.shape[1], 1.7, BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
