"""Multiplies with TF32 tensor cores what the reference multiplies in full fp32.

layer: comparison
catalogue: 10.02
task: a_matmul
expect: wrong
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, o_ptr, K, N, B: tl.constexpr):
    r, c = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros([B, B], tl.float32)
    for start in range(0, K, B):
        k = start + tl.arange(0, B)
        a = tl.load(a_ptr + r[:, None] * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + c[None, :])
        total += tl.dot(a, b, input_precision="tf32")
    tl.store(o_ptr + r[:, None] * N + c[None, :], total)


class ModelNew(nn.Module):
    def forward(self, a, b):
        o = a.new_empty(a.shape[0], b.shape[1])
        matmul_kernel[(a.shape[0] // 32, b.shape[1] // 32)](a, b, o, a.shape[1], b.shape[1], B=32)
        return o
