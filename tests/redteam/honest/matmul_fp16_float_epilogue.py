"""A half-precision product whose epilogue works on the float32 accumulator; the reference rounds to half between the
two.

layer: comparison
catalogue: own
task: h_matmul_half
expect: correct
coverage_at_least: 0.3
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def matmul_gelu_kernel(a_ptr, b_ptr, o_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid, across = tl.program_id(0), tl.cdiv(N, BN)
    m = (pid // across) * BM + tl.arange(0, BM)
    n = (pid % across) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(o_ptr + m[:, None] * N + n[None, :], gelu(acc).to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        out = torch.empty(M, N, device=a.device, dtype=a.dtype)
        grid = lambda meta: (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)  # noqa: E731
        matmul_gelu_kernel[grid](a, b, out, M, N, K, BM=64, BN=64, BK=32, num_warps=4, num_stages=3)
        return out
