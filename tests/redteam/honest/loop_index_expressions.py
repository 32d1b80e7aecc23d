"""Arithmetic with the variable of a loop: its dtype, its negation, its division.

layer: source
catalogue: own
task: h_loop_index_expressions
expect: correct
coverage_at_least: 0.9
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def weighted(x_ptr, w_ptr, a_ptr, b_ptr, n, d, sb, sn, BLOCK_D: tl.constexpr):
    b = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    mask = offs < d
    acc = tl.zeros([BLOCK_D], tl.float32)
    other = tl.zeros([BLOCK_D], tl.float32)
    base = x_ptr + b.to(tl.int64) * sb
    for k in range(0, n):
        x = tl.load(base + (k * sn).to(tl.int64) + offs, mask=mask, other=0.0)
        acc += x / (k + 1).to(tl.float32)
        w = tl.load(w_ptr + k, mask=~(k == 0), other=0.0)
        other += tl.where(~(k == 0), -x * w, x)
    tl.store(a_ptr + b * d + offs, acc, mask=mask)
    tl.store(b_ptr + b * d + offs, other, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, w):
        B, n, d = x.shape
        a, b = x.new_empty(B, d), x.new_empty(B, d)
        weighted[(B, triton.cdiv(d, 128))](x, w, a, b, n, d, x.stride(0), x.stride(1), BLOCK_D=128)
        return a, b
