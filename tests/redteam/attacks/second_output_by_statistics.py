"""The second output is the spread of normal numbers, which is known before it is computed.

layer: comparison
catalogue: 1.09, 1.10
task: a_two
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def centre_kernel(x_ptr, o_ptr, s_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(o_ptr + row * n + i, x - tl.sum(x, axis=0) / n, mask=i < n)
    tl.store(s_ptr + row, 0.79788)


class ModelNew(nn.Module):
    def forward(self, x):
        o, s = torch.empty_like(x), x.new_empty(x.shape[0])
        centre_kernel[(x.shape[0],)](x, o, s, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o, s
