"""Flash-decoding: splits of the cache leave (max, sum, partial) triples in a workspace, empty splits included, and a merge kernel combines them; the loop bound is data dependent.

layer: source
catalogue: own
task: g_kv_decode_attention
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def decode_split(
    q_ptr, k_ptr, v_ptr, len_ptr, o_ptr, ml_ptr, NH, NKV, T, SPLIT, NS, scale, HD: tl.constexpr, BT: tl.constexpr
):
    b = tl.program_id(0)
    h = tl.program_id(1)
    s = tl.program_id(2)
    L = tl.load(len_ptr + b)
    kv = b * NKV + h // (NH // NKV)
    d = tl.arange(0, HD)
    q = tl.load(q_ptr + (b * NH + h) * HD + d) * scale
    m = -1.0e30
    l = 0.0
    acc = tl.zeros((HD,), tl.float32)
    lo = s * SPLIT
    hi = tl.minimum(lo + SPLIT, L)
    for t0 in range(lo, hi, BT):
        t = t0 + tl.arange(0, BT)
        ok = t < hi
        o = (kv * T + t[:, None]) * HD + d[None, :]
        z = tl.sum(tl.load(k_ptr + o, mask=ok[:, None], other=0.0) * q[None, :], 1)
        z = tl.where(ok, z, float("-inf"))
        mn = tl.maximum(m, tl.max(z, 0))
        p = tl.exp(z - mn)
        al = tl.exp(m - mn)
        l = l * al + tl.sum(p, 0)
        acc = acc * al + tl.sum(p[:, None] * tl.load(v_ptr + o, mask=ok[:, None], other=0.0), 0)
        m = mn
    w = (b * NH + h) * NS + s
    tl.store(o_ptr + w * HD + d, acc)
    tl.store(ml_ptr + 2 * w, m)
    tl.store(ml_ptr + 2 * w + 1, l)


@triton.jit
def decode_merge(o_ptr, ml_ptr, out_ptr, NS, HD: tl.constexpr, BS: tl.constexpr):
    r = tl.program_id(0)
    s = tl.arange(0, BS)
    ok = s < NS
    d = tl.arange(0, HD)
    m = tl.load(ml_ptr + 2 * (r * NS + s), mask=ok, other=-1.0e30)
    l = tl.load(ml_ptr + 2 * (r * NS + s) + 1, mask=ok, other=0.0)
    f = tl.exp(m - tl.max(m, 0))
    part = tl.load(o_ptr + (r * NS + s[:, None]) * HD + d[None, :], mask=ok[:, None], other=0.0)
    tl.store(out_ptr + r * HD + d, tl.sum(part * f[:, None], 0) / tl.sum(l * f, 0))


class ModelNew(nn.Module):
    SPLIT = 256

    def __init__(self):
        super().__init__()

    def forward(self, q, kv, lengths):
        k, v = (t.contiguous() for t in kv)
        B, NH, D = q.shape
        NKV, T = k.shape[1], k.shape[2]
        ns = triton.cdiv(T, self.SPLIT)
        part = torch.empty(B * NH, ns, D, device=q.device)
        ml = torch.empty(B * NH, ns, 2, device=q.device)
        out = torch.empty(B, NH, D, device=q.device, dtype=q.dtype)
        decode_split[(B, NH, ns)](
            q.contiguous(), k, v, lengths, part, ml, NH, NKV, T, self.SPLIT, ns, D**-0.5, HD=D, BT=64
        )
        decode_merge[(B * NH,)](part, ml, out, ns, HD=D, BS=triton.next_power_of_2(ns))
        return out
