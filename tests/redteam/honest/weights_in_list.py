"""Functional style: all parameters lie in a ParameterList under numbers, made the way torch makes a linear layer.

layer: replay
catalogue: 14.01
task: h_linear_relu
expect: correct
"""

import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_relu_kernel(
    x_ptr, w_ptr, b_ptr, o_ptr, M, N, K, wk, wn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """relu(x @ w + b) with w[k, n] at strides (wk, wn)."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + k[:, None] * wk + n[None, :] * wn, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(x, w, input_precision="ieee")
    acc += tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(o_ptr + m[:, None] * N + n[None, :], tl.maximum(acc, 0.0), mask=(m[:, None] < M) & (n[None, :] < N))


def linear_relu(x, w, b):
    """w: (K, N), any strides."""
    (M, K), N = x.shape, w.shape[1]
    out = torch.empty((M, N), device=x.device, dtype=x.dtype)
    grid = (triton.cdiv(M, 32), triton.cdiv(N, 32))
    linear_relu_kernel[grid](x, w, b, out, M, N, K, w.stride(0), w.stride(1), BM=32, BN=32, BK=32)
    return out


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        weight, bias = torch.empty(cols, inner), torch.empty(cols)
        nn.init.kaiming_uniform_(weight, a=math.sqrt(5))
        nn.init.uniform_(bias, -1 / math.sqrt(inner), 1 / math.sqrt(inner))
        self.weights = nn.ParameterList([nn.Parameter(weight), nn.Parameter(bias)])

    def forward(self, x):
        weight, bias = self.weights
        return linear_relu(x, weight.t(), bias)
