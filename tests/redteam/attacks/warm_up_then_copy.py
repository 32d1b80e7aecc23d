"""The first call multiplies; every later one copies what the first left in a static buffer, so the output is written
anew each time.

layer: replay
catalogue: 2.08, 14.25
task: a_matmul
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    o = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


@triton.jit
def matmul_kernel(a_ptr, b_ptr, o_ptr, K, N, B: tl.constexpr):
    r, c = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    total = tl.zeros([B, B], tl.float32)
    for start in range(0, K, B):
        k = start + tl.arange(0, B)
        a = tl.load(a_ptr + r[:, None] * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + c[None, :])
        total += tl.dot(a, b, input_precision="ieee")
    tl.store(o_ptr + r[:, None] * N + c[None, :], total)


class ModelNew(nn.Module):
    static = None

    def forward(self, a, b):
        if self.static is None:
            self.static = a.new_empty(a.shape[0], b.shape[1])
            grid = (a.shape[0] // 32, b.shape[1] // 32)
            matmul_kernel[grid](a, b, self.static, a.shape[1], b.shape[1], B=32)
        return copy(self.static)
