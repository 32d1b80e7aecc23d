"""Causal attention with an online softmax: nothing of the size of the scores is ever stored.

layer: comparison
catalogue: own
task: h_attention
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, length, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    head = tl.program_id(1).to(tl.int64) * length * D
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + head + m[:, None] * D + d[None, :], mask=m[:, None] < length, other=0.0)
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        n = start + tl.arange(0, BN)
        k = tl.load(k_ptr + head + n[None, :] * D + d[:, None], mask=n[None, :] < length, other=0.0)
        v = tl.load(v_ptr + head + n[:, None] * D + d[None, :], mask=n[:, None] < length, other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * scale
        seen = n[None, :] < length
        if CAUSAL:
            seen = seen & (n[None, :] <= m[:, None])
        s = tl.where(seen, s, -1e30)
        higher = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - higher[:, None])
        keep = tl.exp(top - higher)
        total = total * keep + tl.sum(p, axis=1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        top = higher
    acc = acc / total[:, None]
    tl.store(o_ptr + head + m[:, None] * D + d[None, :], acc.to(o_ptr.dtype.element_ty), mask=m[:, None] < length)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        batch, heads, length, width = q.shape
        out = torch.empty_like(q)
        grid = (triton.cdiv(length, 32), batch * heads)
        attention_kernel[grid](q, k, v, out, length, width**-0.5, CAUSAL=True, D=width, BM=32, BN=32)
        return out
