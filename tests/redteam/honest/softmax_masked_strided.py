"""Masked softmax that reads the broadcast bool mask through its own strides (no expand copy) and turns fully hidden rows into zeros by a guarded divide.

layer: source
catalogue: own
task: g_softmax_masked
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.heuristics({"BLOCK": lambda a: triton.next_power_of_2(a["K"])})
@triton.jit
def masked_softmax(s_ptr, m_ptr, o_ptr, H, Q, K, smb, smk, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    b = row // (H * Q)
    c = tl.arange(0, BLOCK)
    inb = c < K
    hide = tl.load(m_ptr + b * smb + c * smk, mask=inb, other=1).to(tl.int1)
    s = tl.load(s_ptr + row * K + c, mask=inb, other=0.0)
    live = inb & (hide == 0)
    s = tl.where(live, s, float("-inf"))
    mx = tl.max(s, 0)
    mx = tl.where(mx == float("-inf"), 0.0, mx)
    e = tl.exp(s - mx)
    den = tl.sum(e, 0)
    tl.store(o_ptr + row * K + c, e / tl.where(den == 0.0, 1.0, den), mask=inb)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, scores, mask):
        B, H, Q, K = scores.shape
        assert mask.dtype == torch.bool and mask.shape == (B, 1, 1, K)
        scores = scores.contiguous()
        out = torch.empty_like(scores)
        masked_softmax[(B * H * Q,)](scores, mask, out, H, Q, K, mask.stride(0), mask.stride(3))
        return out
