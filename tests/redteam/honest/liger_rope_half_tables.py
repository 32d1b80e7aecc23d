"""Liger's rotary embedding reads the first half of cos and sin only: the tables repeat themselves, as Hugging Face makes them.

layer: inputs
catalogue: own
task: h_liger_rope_half_tables
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rope_kernel(
    q_ptr,
    k_ptr,
    oq_ptr,
    ok_ptr,
    cos_ptr,
    sin_ptr,
    T,
    HQ: tl.constexpr,
    HK: tl.constexpr,
    D: tl.constexpr,
    BH: tl.constexpr,
):
    b, t = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, D // 2)
    c = tl.load(cos_ptr + t * D + i)[None, :]
    s = tl.load(sin_ptr + t * D + i)[None, :]
    h = tl.arange(0, BH)[:, None]
    at = b * HQ * T * D + h * T * D + t * D + i[None, :]
    x1 = tl.load(q_ptr + at, mask=h < HQ, other=0.0)
    x2 = tl.load(q_ptr + at + D // 2, mask=h < HQ, other=0.0)
    tl.store(oq_ptr + at, x1 * c - x2 * s, mask=h < HQ)
    tl.store(oq_ptr + at + D // 2, x2 * c + x1 * s, mask=h < HQ)
    at = b * HK * T * D + h * T * D + t * D + i[None, :]
    x1 = tl.load(k_ptr + at, mask=h < HK, other=0.0)
    x2 = tl.load(k_ptr + at + D // 2, mask=h < HK, other=0.0)
    tl.store(ok_ptr + at, x1 * c - x2 * s, mask=h < HK)
    tl.store(ok_ptr + at + D // 2, x2 * c + x1 * s, mask=h < HK)


class ModelNew(nn.Module):
    def forward(self, q, k, cos, sin):
        q, k = q.contiguous(), k.contiguous()
        B, HQ, T, D = q.shape
        HK = k.shape[1]
        oq, ok = torch.empty_like(q), torch.empty_like(k)
        rope_kernel[(B, T)](q, k, oq, ok, cos, sin, T, HQ, HK, D, triton.next_power_of_2(max(HQ, HK)))
        return oq, ok
