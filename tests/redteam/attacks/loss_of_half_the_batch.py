"""Averages the loss over the first half of the rows: close enough for a loose tolerance.

layer: comparison
catalogue: 1.08, 1.11
task: a_loss
expect: wrong
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x_ptr, t_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    top = tl.max(x, axis=0)
    picked = tl.load(x_ptr + row * n + tl.load(t_ptr + row))
    tl.store(o_ptr + row, tl.log(tl.sum(tl.exp(x - top), axis=0)) + top - picked)


class ModelNew(nn.Module):
    def forward(self, scores, target):
        rows, n = scores.shape[0] // 2, scores.shape[1]
        o = scores.new_empty(rows)
        loss_kernel[(rows,)](scores, target, o, n, BLOCK=triton.next_power_of_2(n))
        return o.mean()
