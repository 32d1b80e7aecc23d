"""Global and per-row norms need a grid-wide dependency: partials, a one-program reduce, then a divide kernel reading the 0-dim norm from device memory.

layer: source
catalogue: own
task: g_frobenius_l1norm
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def phase1(x_ptr, sq_ptr, ab_ptr, F, NB, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    b = tl.program_id(1)
    o = b * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * F + o, mask=o < F, other=0.0)
    tl.store(sq_ptr + r * NB + b, tl.sum(x * x))
    tl.store(ab_ptr + r * NB + b, tl.sum(tl.abs(x)))


@triton.jit
def phase2(sq_ptr, fro_ptr, total, BLOCK: tl.constexpr):
    a = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, total, BLOCK):
        o = i + tl.arange(0, BLOCK)
        a += tl.load(sq_ptr + o, mask=o < total, other=0.0)
    tl.store(fro_ptr, tl.sqrt(tl.sum(a)))


@triton.jit
def phase3(x_ptr, ab_ptr, fro_ptr, y_ptr, z_ptr, F, NB, BLOCK: tl.constexpr, PNB: tl.constexpr):
    r = tl.program_id(0)
    b = tl.program_id(1)
    k = tl.arange(0, PNB)
    mean = tl.sum(tl.load(ab_ptr + r * NB + k, mask=k < NB, other=0.0)) / F
    o = b * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * F + o, mask=o < F, other=0.0)
    tl.store(y_ptr + r * F + o, x / tl.load(fro_ptr), mask=o < F)
    tl.store(z_ptr + r * F + o, x / mean, mask=o < F)


class ModelNew(nn.Module):
    BLOCK = 2048

    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        R, F = x.shape
        nb = triton.cdiv(F, self.BLOCK)
        sq = torch.empty(R, nb, device=x.device)
        ab = torch.empty(R, nb, device=x.device)
        fro = torch.empty((), device=x.device)
        y, z = torch.empty_like(x), torch.empty_like(x)
        phase1[(R, nb)](x, sq, ab, F, nb, BLOCK=self.BLOCK)
        phase2[(1,)](sq, fro, R * nb, BLOCK=1024)
        phase3[(R, nb)](x, ab, fro, y, z, F, nb, BLOCK=self.BLOCK, PNB=triton.next_power_of_2(nb))
        return y, z
