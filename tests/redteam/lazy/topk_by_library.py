"""The library finds the largest scores, the kernel takes the softmax of the few that are left.

layer: laziness
catalogue: own
task: h_topk
expect: correct
coverage_at_most: 0.6
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def small_softmax_kernel(v_ptr, o_ptr, rows, K: tl.constexpr, KPAD: tl.constexpr, ROWS: tl.constexpr):
    r, k = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, KPAD)
    inside = (r[:, None] < rows) & (k[None, :] < K)
    v = tl.load(v_ptr + r[:, None] * K + k[None, :], mask=inside, other=-1e30)
    e = tl.where(inside, tl.exp(v - tl.max(v, axis=1)[:, None]), 0.0)
    total = tl.where(r < rows, tl.sum(e, axis=1), 1.0)
    tl.store(o_ptr + r[:, None] * K + k[None, :], e / total[:, None], mask=inside)


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, scores):
        values, indices = torch.topk(scores, self.k, dim=-1)
        out, rows = torch.empty_like(values), values.shape[0]
        small_softmax_kernel[(triton.cdiv(rows, 128),)](
            values, out, rows, K=self.k, KPAD=triton.next_power_of_2(self.k), ROWS=128
        )
        return out, indices
