"""Repeated maxima in a loop give the largest k with their indices; the softmax over them stays in registers.

layer: comparison
catalogue: own
task: h_topk
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def router_kernel(s_ptr, p_ptr, i_ptr, n, K: tl.constexpr, KPAD: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    slots = tl.arange(0, KPAD)
    s = tl.load(s_ptr + row * n + i, mask=i < n, other=float("-inf"))
    values = tl.full((KPAD,), float("-inf"), tl.float32)
    where = tl.zeros((KPAD,), tl.int64)
    for k in tl.static_range(K):
        best = tl.argmax(s, axis=0)
        values = tl.where(slots == k, tl.max(s, axis=0), values)
        where = tl.where(slots == k, best.to(tl.int64), where)
        s = tl.where(i == best, float("-inf"), s)
    e = tl.exp(values - tl.max(values, axis=0))
    tl.store(p_ptr + row * K + slots, e / tl.sum(e, axis=0), mask=slots < K)
    tl.store(i_ptr + row * K + slots, where, mask=slots < K)


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, scores):
        rows, n = scores.shape
        weights = torch.empty(rows, self.k, device=scores.device)
        indices = torch.empty(rows, self.k, device=scores.device, dtype=torch.long)
        router_kernel[(rows,)](
            scores, weights, indices, n, K=self.k, KPAD=triton.next_power_of_2(self.k), BLOCK=triton.next_power_of_2(n)
        )
        return weights, indices
