"""GEMM fused with an online logsumexp so that the (batch x out) product is never stored; clamp bounds arrive as float kernel arguments.

layer: source
catalogue: own
task: g_linear_logsumexp_chain
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_lse(
    x_ptr, w_ptr, b_ptr, o_ptr, M, N, K, scale, lo, hi, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    mx = tl.full((BM,), float("-inf"), tl.float32)
    sm = tl.zeros((BM,), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            k = k0 + tl.arange(0, BK)
            x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
            w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
            acc = tl.dot(x, w, acc, input_precision="ieee")
        y = (acc + tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]) * (2.0 * scale)
        y = tl.minimum(tl.maximum(y, lo), hi)
        y = tl.where((n < N)[None, :], y, float("-inf"))
        nm = tl.maximum(mx, tl.max(y, 1))
        sm = sm * tl.exp(mx - nm) + tl.sum(tl.exp(y - nm[:, None]), 1)
        mx = nm
    l = mx + tl.log(sm)
    sp = tl.maximum(l, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(l)))
    e = tl.exp(-2.0 * sp)
    tl.store(o_ptr + m, l * l * (1.0 - e) / (1.0 + e), mask=m < M)


class ModelNew(nn.Module):
    def __init__(self, fin, fout, scale, lo, hi):
        super().__init__()
        self.matmul = nn.Linear(fin, fout)
        self.scale, self.lo, self.hi = scale, lo, hi

    def forward(self, x):
        M, K = x.shape
        N = self.matmul.weight.size(0)
        out = torch.empty((M, 1), device=x.device, dtype=x.dtype)
        linear_lse[(triton.cdiv(M, 32),)](
            x.contiguous(),
            self.matmul.weight,
            self.matmul.bias,
            out,
            M,
            N,
            K,
            float(self.scale),
            float(self.lo),
            float(self.hi),
            BM=32,
            BN=64,
            BK=32,
        )
        return out
