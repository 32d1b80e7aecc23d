"""Leaves out the products with the zeros of triangular inputs.

layer: source
catalogue: own
task: h_triangular_inputs
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def triu_matmul(a_ptr, b_ptr, c_ptr, N, BLOCK: tl.constexpr):
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    m = pid_m * BLOCK + tl.arange(0, BLOCK)
    n = pid_n * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    # A[m, k] is zero for k < m and B[k, n] for k > n: only the tiles between them count
    for kt in range(pid_m, pid_n + 1):
        k = kt * BLOCK + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + m[:, None] * N + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.where(m[:, None] <= n[None, :], acc, 0.0))


class ModelNew(nn.Module):
    def forward(self, A, B):
        n = A.shape[0]
        assert n % 32 == 0
        C = torch.empty_like(A)
        triu_matmul[(n // 32, n // 32)](A, B, C, n, BLOCK=32)
        return C
