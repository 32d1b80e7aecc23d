"""A causal mask is a buffer of both models under one name: the task's says what may be seen, the solution's what may not.

layer: replay
catalogue: own
task: h_mask_of_the_same_name
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def masked_softmax(s_ptr, m_ptr, o_ptr, T, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    s = tl.load(s_ptr + row * T + i, mask=i < T, other=float("-inf"))
    hidden = tl.load(m_ptr + (row % T) * T + i, mask=i < T, other=1)
    s = tl.where(hidden != 0, float("-inf"), s)
    e = tl.exp(s - tl.max(s, 0))
    tl.store(o_ptr + row * T + i, e / tl.sum(e, 0), mask=i < T)


class ModelNew(nn.Module):
    def __init__(self, t):
        super().__init__()
        self.register_buffer("mask", torch.triu(torch.ones(t, t, dtype=torch.bool), diagonal=1))

    def forward(self, s):
        o = torch.empty_like(s)
        T = s.shape[-1]
        masked_softmax[(s.numel() // T,)](s, self.mask, o, T, BLOCK=triton.next_power_of_2(T))
        return o
