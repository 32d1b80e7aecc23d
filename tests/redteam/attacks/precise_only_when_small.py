"""Multiplies exactly where the matrices are small, as in a quick check, and in fp16 above that size.

layer: comparison
catalogue: 3.05, 3.09
task: a_matmul
expect: wrong
device: cuda
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, o_ptr, K, N, B: tl.constexpr, EXACT: tl.constexpr):
    r, c = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros([B, B], tl.float32)
    for start in range(0, K, B):
        k = start + tl.arange(0, B)
        a = tl.load(a_ptr + r[:, None] * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + c[None, :])
        if EXACT:
            total += tl.dot(a, b, input_precision="ieee")
        else:
            total += tl.dot(a.to(tl.float16), b.to(tl.float16))
    tl.store(o_ptr + r[:, None] * N + c[None, :], total)


class ModelNew(nn.Module):
    def forward(self, a, b):
        o, (m, k), n = a.new_empty(a.shape[0], b.shape[1]), a.shape, b.shape[1]
        matmul_kernel[(m // 32, n // 32)](a, b, o, k, n, B=32, EXACT=m * n <= 65536)
        return o
