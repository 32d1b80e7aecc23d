"""Dropout of its own with probability 0, by Triton's random numbers.

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
def softmax_kernel(x_ptr, o_ptr, n, p, seed, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    keep = tl.rand(seed, row * n + i) >= p
    tl.store(o_ptr + row * n + i, tl.where(keep, e / tl.sum(e, axis=0) / (1 - p), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        seed = int(torch.randint(0, 2**31, (1,)).item())
        softmax_kernel[(x.shape[0],)](x, o, x.shape[1], 0.0, seed, BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
