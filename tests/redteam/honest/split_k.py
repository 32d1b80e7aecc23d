"""Split-K product: partial products are added to a zeroed buffer by atomics, a second kernel adds the bias and
rectifies.

layer: profile
catalogue: own
task: h_linear_relu
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def split_k_kernel(x_ptr, w_ptr, o_ptr, M, N, K, STEP, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    begin = tl.program_id(2) * STEP
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, STEP, BK):
        k = begin + start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc += tl.dot(x, w, input_precision="ieee")
    tl.atomic_add(o_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def bias_relu_kernel(y_ptr, b_ptr, total, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < total) + tl.load(b_ptr + i % N, mask=i < total)
    tl.store(y_ptr + i, tl.maximum(y, 0.0), mask=i < total)


class ModelNew(nn.Module):
    SPLITS = 2

    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        (M, K), N = x.shape, self.linear.out_features
        out = torch.zeros(M, N, device=x.device, dtype=x.dtype)
        step = triton.cdiv(triton.cdiv(K, self.SPLITS), 32) * 32
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), self.SPLITS)
        split_k_kernel[grid](x, self.linear.weight, out, M, N, K, step, BM=32, BN=32, BK=32)
        bias_relu_kernel[(triton.cdiv(M * N, 1024),)](out, self.linear.bias, M * N, N, BLOCK=1024)
        return out
