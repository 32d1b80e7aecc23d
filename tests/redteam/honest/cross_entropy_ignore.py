"""Integer targets, some of them to be ignored; sum and count of the rest go through atomics.

layer: inputs
catalogue: own
task: h_cross_entropy
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(s_ptr, t_ptr, acc_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    target = tl.load(t_ptr + row)
    if target != 0:
        s = tl.load(s_ptr + row * n + i, mask=i < n, other=float("-inf"))
        top = tl.max(s, axis=0)
        lse = tl.log(tl.sum(tl.exp(s - top), axis=0)) + top
        tl.atomic_add(acc_ptr, lse - tl.load(s_ptr + row * n + target))
        tl.atomic_add(acc_ptr + 1, 1.0)


class ModelNew(nn.Module):
    def forward(self, scores, target):
        acc = torch.zeros(2, device=scores.device, dtype=torch.float32)
        rows, n = scores.shape
        cross_entropy_kernel[(rows,)](scores, target, acc, n, BLOCK=triton.next_power_of_2(n))
        return acc[0] / acc[1]
