"""Ignores A_log, which is the same lattice in every channel after initialisation: exp(dt A_n) is taken as the power n of exp(-dt).

layer: comparison
catalogue: own
task: t_mamba
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scan_kernel(x_ptr, dt_ptr, b_ptr, c_ptr, o_ptr, L, W, N: tl.constexpr, BLOCK: tl.constexpr):
    batch, w, n = tl.program_id(0), tl.arange(0, BLOCK), tl.arange(0, N)
    h = tl.zeros((BLOCK, N), tl.float32)
    for t in range(L):
        at = (batch * L + t) * W + w
        x = tl.load(x_ptr + at, mask=w < W, other=0.0)
        dt = tl.load(dt_ptr + at, mask=w < W, other=0.0)
        dt = tl.maximum(dt, 0.0) + tl.log(1 + tl.exp(-tl.abs(dt)))
        b = tl.load(b_ptr + (batch * L + t) * N + n)
        c = tl.load(c_ptr + (batch * L + t) * N + n)
        h = h * tl.exp(-dt[:, None] * (n + 1)[None, :]) + (dt * x)[:, None] * b[None, :]
        tl.store(o_ptr + at, tl.sum(h * c[None, :], axis=1), mask=w < W)


class ModelNew(nn.Module):
    def __init__(self, width, states):
        super().__init__()

    def forward(self, x, dt, B, C):
        o = torch.empty_like(x)
        scan_kernel[(x.shape[0],)](
            x, dt, B, C, o, x.shape[1], x.shape[2], N=B.shape[2], BLOCK=triton.next_power_of_2(x.shape[2])
        )
        return o
