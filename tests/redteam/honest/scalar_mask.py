"""Masks that depend on a scalar alone.

layer: source
catalogue: own
task: h_scalar_mask
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def lookup(ids_ptr, table_ptr, gate_ptr, y_ptr, n, D: tl.constexpr, BD: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, BD)
    idx = tl.load(ids_ptr + row)
    g = tl.load(gate_ptr + row)
    valid = idx >= 0
    y = tl.load(table_ptr + idx * D + d, mask=valid & (d < D), other=0.0)
    if D == BD:
        y = tl.load(table_ptr + idx * D + d, mask=valid, other=0.0)
    y += tl.load(gate_ptr + row + d * 0, mask=g > 0, other=0.0)
    tl.store(y_ptr + row * D + d, y, mask=d < D)


class ModelNew(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.table = nn.Parameter(torch.randn(v, d))

    def forward(self, ids, gate):
        D = self.table.shape[1]
        y = torch.empty(ids.numel(), D, device=ids.device)
        lookup[(ids.numel(),)](ids, self.table, gate, y, ids.numel(), D, triton.next_power_of_2(D), num_warps=1)
        return y
