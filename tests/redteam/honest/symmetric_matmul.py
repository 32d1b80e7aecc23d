"""Relies on the task's matrices being symmetric, as all its inputs are.

layer: source
catalogue: own
task: h_symmetric_matmul
expect: correct
coverage_at_least: 0.8
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def symm_kernel(a_ptr, b_ptr, c_ptr, N, BLOCK: tl.constexpr, BK: tl.constexpr):
    """Both operands are read along their contiguous dimension with k outermost: A[m, k] = A[k, m]."""
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k0 in range(0, N, BK):
        k = k0 + tl.arange(0, BK)
        a_t = tl.load(a_ptr + k[:, None] * N + m[None, :], mask=(k[:, None] < N) & (m[None, :] < N), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < N) & (n[None, :] < N), other=0.0)
        acc += tl.dot(tl.trans(a_t), b, input_precision="ieee")
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < N) & (n[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, A, B):
        n = A.shape[0]
        C = torch.empty_like(A)
        symm_kernel[(triton.cdiv(n, 32), triton.cdiv(n, 32))](A, B, C, n, BLOCK=32, BK=32)
        return C
