"""Masked cumulative product via associative_scan with a multiply, chunk carry read back by a masked reduction, and a uint8 view of the bool mask.

layer: source
catalogue: own
task: g_cumprod_masked
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mul(a, b):
    return a * b


@triton.jit
def cumprod_kernel(a_ptr, m_ptr, o_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    carry = 1.0
    for s in range(0, N, BLOCK):
        c = s + tl.arange(0, BLOCK)
        ok = c < N
        a = tl.load(a_ptr + r * N + c, mask=ok, other=0.0)
        k = tl.load(m_ptr + r * N + c, mask=ok, other=0)
        f = tl.where((k != 0) & ok, 1.0 - a, 1.0)
        p = tl.associative_scan(f, 0, mul) * carry
        tl.store(o_ptr + r * N + c, p * a, mask=ok)
        carry = tl.sum(tl.where(tl.arange(0, BLOCK) == BLOCK - 1, p, 0.0), 0)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, alpha, mask):
        R, N = alpha.shape
        out = torch.empty_like(alpha)
        cumprod_kernel[(R,)](alpha.contiguous(), mask.contiguous().view(torch.uint8), out, N, BLOCK=512)
        return out
