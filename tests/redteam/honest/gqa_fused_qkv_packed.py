"""QKV packed into one weight at construction, RoPE applied in a Triton kernel in place on the fresh projection, then a fused biased GQA attention kernel reading heads by stride.

layer: source
catalogue: own
task: g_gqa_rope
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rope_inplace(p_ptr, cos_ptr, sin_ptr, S, row, NROT, HALF: tl.constexpr, BH: tl.constexpr):
    t = tl.program_id(0)
    h = tl.arange(0, BH)
    d = tl.arange(0, HALF)
    c = tl.load(cos_ptr + (t % S) * HALF + d)[None, :]
    s = tl.load(sin_ptr + (t % S) * HALF + d)[None, :]
    m = (h < NROT)[:, None] & (d >= 0)[None, :]
    pa = p_ptr + t * row + h[:, None] * (2 * HALF) + d[None, :]
    a = tl.load(pa, mask=m, other=0.0)
    b = tl.load(pa + HALF, mask=m, other=0.0)
    tl.store(pa, a * c - b * s, mask=m)
    tl.store(pa + HALF, b * c + a * s, mask=m)


@triton.jit
def gqa(p_ptr, bias_ptr, o_ptr, S, row, NH, NKV, scale, HD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    b = tl.program_id(2)
    h = tl.program_id(1)
    kv = h // (NH // NKV)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, HD)
    base = p_ptr + b * S * row
    q = tl.load(base + m[:, None] * row + h * HD + d[None, :], mask=m[:, None] < S, other=0.0)
    mi = tl.full((BM,), -1e30, tl.float32)
    li = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, HD), tl.float32)
    for n0 in range(0, S, BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(base + n[None, :] * row + (NH + kv) * HD + d[:, None], mask=n[None, :] < S, other=0.0)
        bb = tl.load(
            bias_ptr + (b * S + m[:, None]) * S + n[None, :], mask=(m[:, None] < S) & (n[None, :] < S), other=0.0
        )
        s = tl.dot(q, k, input_precision="ieee") * scale + bb
        s = tl.where(n[None, :] < S, s, float("-inf"))
        mn = tl.maximum(mi, tl.max(s, 1))
        p = tl.exp(s - mn[:, None])
        al = tl.exp(mi - mn)
        li = li * al + tl.sum(p, 1)
        v = tl.load(base + n[:, None] * row + (NH + NKV + kv) * HD + d[None, :], mask=n[:, None] < S, other=0.0)
        acc = acc * al[:, None] + tl.dot(p, v, input_precision="ieee")
        mi = mn
    tl.store(o_ptr + ((b * S + m[:, None]) * NH + h) * HD + d[None, :], acc / li[:, None], mask=m[:, None] < S)


class ModelNew(nn.Module):
    def __init__(self, dim, nh, nkv, max_seq):
        super().__init__()
        self.nh, self.nkv, self.hd = nh, nkv, dim // nh
        hd = self.hd
        parts = [nn.Linear(dim, k * hd, bias=False).weight.detach() for k in (nh, nkv, nkv)]
        self.w_qkv = nn.Parameter(torch.cat(parts, 0))
        self.out = nn.Linear(dim, dim, bias=False)
        inv = 1.0 / (10000 ** (torch.arange(0, hd, 2).float() / hd))
        f = torch.outer(torch.arange(max_seq).float(), inv)
        self.register_buffer("cos", f.cos(), persistent=False)
        self.register_buffer("sin", f.sin(), persistent=False)

    def forward(self, x, bias):
        B, S, _ = x.shape
        p = nn.functional.linear(x, self.w_qkv)
        row = p.shape[-1]
        rot = self.nh + self.nkv
        rope_inplace[(B * S,)](p, self.cos, self.sin, S, row, rot, HALF=self.hd // 2, BH=triton.next_power_of_2(rot))
        o = torch.empty(B, S, self.nh * self.hd, device=x.device, dtype=x.dtype)
        gqa[(triton.cdiv(S, 32), self.nh, B)](
            p, bias.contiguous(), o, S, row, self.nh, self.nkv, self.hd**-0.5, HD=self.hd, BM=32, BN=32
        )
        return self.out(o)
