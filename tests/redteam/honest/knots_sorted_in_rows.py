"""Piecewise-linear interpolation on knots that rise in every row: counts the knots below, where the reference searches.

layer: inputs
catalogue: own
task: h_knots_sorted_in_rows
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def interpolate(k_ptr, v_ptr, u_ptr, o_ptr, N, U, BN: tl.constexpr, BU: tl.constexpr):
    row = tl.program_id(0)
    n, j = tl.arange(0, BN), tl.arange(0, BU)
    u = tl.load(u_ptr + row * U + j, mask=j < U, other=0.0)
    k = tl.load(k_ptr + row * N + n, mask=n < N, other=float("inf"))
    i = tl.sum((k[None, :] <= u[:, None]).to(tl.int32), 1)
    i = tl.minimum(tl.maximum(i, 1), N - 1)
    x0 = tl.load(k_ptr + row * N + i - 1, mask=j < U)
    x1 = tl.load(k_ptr + row * N + i, mask=j < U)
    y0 = tl.load(v_ptr + row * N + i - 1, mask=j < U)
    y1 = tl.load(v_ptr + row * N + i, mask=j < U)
    t = (u - x0) / tl.maximum(x1 - x0, 1e-3)
    tl.store(o_ptr + row * U + j, y0 + t * (y1 - y0), mask=j < U)


class ModelNew(nn.Module):
    def forward(self, knots, values, u):
        o = torch.empty_like(u)
        interpolate[(u.shape[0],)](
            knots,
            values,
            u,
            o,
            knots.shape[1],
            u.shape[1],
            triton.next_power_of_2(knots.shape[1]),
            triton.next_power_of_2(u.shape[1]),
        )
        return o
