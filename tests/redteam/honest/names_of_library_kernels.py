"""Its kernels are called as the library's are: a profile read by name alone mixes them up.

layer: profile
catalogue: 9.12
task: h_softmax
expect: correct
coverage_at_least: 0.8
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def vectorized_elementwise_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) / 1.7, mask=i < n)


@triton.jit
def softmax_warp_forward(y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    y = tl.load(y_ptr + row * n + i, mask=i < n, other=float("-inf"))
    e = tl.exp(y - tl.max(y, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y, out = torch.empty_like(x), torch.empty_like(x)
        vectorized_elementwise_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        softmax_warp_forward[(x.shape[0],)](y, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
