"""Outputs of int64, bool, float64 and uint8 from one kernel.

layer: comparison
catalogue: own
task: h_argsort
expect: correct
device: cpu
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rank_kernel(x_ptr, r_ptr, p_ptr, s_ptr, b_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("inf"))
    rank = tl.sum((x[None, :] < x[:, None]).to(tl.int64), axis=1)
    tl.store(r_ptr + row * n + i, rank, mask=i < n)
    tl.store(p_ptr + row * n + i, x > 0, mask=i < n)
    tl.store(s_ptr + row, tl.sum(tl.where(i < n, x, 0.0).to(tl.float64), axis=0))
    tl.store(b_ptr + row * n + i, (tl.where(i < n, x * 100, 0.0).to(tl.int32) & 255).to(tl.uint8), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        rank = torch.empty(x.shape, dtype=torch.long, device=x.device)
        positive = torch.empty_like(x, dtype=torch.bool)
        total = x.new_empty(x.shape[0], dtype=torch.float64)
        low = torch.empty_like(x, dtype=torch.uint8)
        block = triton.next_power_of_2(x.shape[1])
        rank_kernel[(x.shape[0],)](x, rank, positive, total, low, x.shape[1], BLOCK=block)
        return rank, positive, total, low
