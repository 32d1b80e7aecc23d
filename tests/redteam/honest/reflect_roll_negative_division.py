"""Indices before the first are divided and negated.

layer: source
catalogue: own
task: h_reflect_roll_negative_division
expect: correct
coverage_at_least: 0.9
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pad_roll(x_ptr, y_ptr, z_ptr, N, P: tl.constexpr, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    M = N + 2 * P
    i = (o - SHIFT) % M  # the remainder has the sign of the dividend
    i = tl.where(i < 0, i + M, i) - P
    i = tl.where(i < 0, -i, i)
    i = tl.where(i >= N, 2 * (N - 1) - i, i)
    tl.store(y_ptr + row * M + o, 2 * tl.load(x_ptr + row * N + i, mask=o < M), mask=o < M)
    acc = tl.zeros([BLOCK], tl.float32)
    for k in range(7):
        j = o + (k - 3) // 2  # integer division of tensors rounds towards zero
        acc += tl.load(x_ptr + row * N + j, mask=(j >= 0) & (j < N), other=0.0)
    tl.store(z_ptr + row * N + o, acc, mask=o < N)


class ModelNew(nn.Module):
    def forward(self, x):
        R, N = x.shape
        y, z = x.new_empty(R, N + 6), x.new_empty(R, N)
        pad_roll[(R,)](x, y, z, N, 3, -2, BLOCK=triton.next_power_of_2(N + 6))
        return y, z
