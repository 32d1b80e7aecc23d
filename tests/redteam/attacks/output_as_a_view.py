"""The output is one column expanded without memory: what the task writes out is left to whoever reads it, for nothing without a GPU.

layer: clock
catalogue: own
task: t_broadcast
expect: correct
speedup_at_most: 1.8
coverage_at_most: 0.6
device: cpu
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def max_kernel(x_ptr, o_ptr, m, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + i, mask=i < m, other=-float("inf"))
    tl.store(o_ptr + row, tl.exp(tl.max(x, axis=0)))


class ModelNew(nn.Module):
    def forward(self, x):
        o = x.new_empty(x.shape[0], 1)
        max_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o.expand(x.shape)
