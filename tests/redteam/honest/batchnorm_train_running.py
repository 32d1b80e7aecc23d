"""Train-mode BatchNorm: one program per channel computes the statistics and writes running_mean/running_var in the kernel itself (a kernel that mutates module buffers), eval mode handled too.

layer: source
catalogue: own
task: g_batchnorm_train
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bn_stats(x_ptr, mean_ptr, rstd_ptr, rm_ptr, rv_ptr, B, C, L, eps, momentum, BLOCK: tl.constexpr):
    c = tl.program_id(0)
    cnt = B * L
    s = tl.zeros((BLOCK,), tl.float32)
    for b in range(B):
        for i in range(0, L, BLOCK):
            o = i + tl.arange(0, BLOCK)
            s += tl.load(x_ptr + (b * C + c) * L + o, mask=o < L, other=0.0)
    mean = tl.sum(s, 0) / cnt
    v = tl.zeros((BLOCK,), tl.float32)
    for b in range(B):
        for i in range(0, L, BLOCK):
            o = i + tl.arange(0, BLOCK)
            d = tl.load(x_ptr + (b * C + c) * L + o, mask=o < L, other=0.0) - mean
            v += tl.where(o < L, d * d, 0.0)
    m2 = tl.sum(v, 0)
    tl.store(mean_ptr + c, mean)
    tl.store(rstd_ptr + c, 1.0 / tl.sqrt(m2 / cnt + eps))
    rm = tl.load(rm_ptr + c)
    rv = tl.load(rv_ptr + c)
    tl.store(rm_ptr + c, rm + momentum * (mean - rm))
    tl.store(rv_ptr + c, rv + momentum * (m2 / (cnt - 1) - rv))


@triton.jit
def bn_apply(x_ptr, y_ptr, mean_ptr, rstd_ptr, w_ptr, b_ptr, C, L, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = row % C
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * L + o, mask=o < L)
    y = (x - tl.load(mean_ptr + c)) * tl.load(rstd_ptr + c) * tl.load(w_ptr + c) + tl.load(b_ptr + c)
    tl.store(y_ptr + row * L + o, tl.minimum(tl.maximum(y, 0.0), 6.0), mask=o < L)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bn = nn.BatchNorm1d(features)

    def forward(self, x):
        x = x.contiguous()
        B, C, L = x.shape
        bn = self.bn
        y = torch.empty_like(x)
        if self.training:
            mean = torch.empty(C, device=x.device, dtype=torch.float32)
            rstd = torch.empty_like(mean)
            bn.num_batches_tracked.add_(1)
            bn_stats[(C,)](x, mean, rstd, bn.running_mean, bn.running_var, B, C, L, bn.eps, bn.momentum, BLOCK=1024)
        else:
            mean, rstd = bn.running_mean, torch.rsqrt(bn.running_var + bn.eps)
        bn_apply[(B * C, triton.cdiv(L, 1024))](x, y, mean, rstd, bn.weight, bn.bias, C, L, BLOCK=1024)
        return y
