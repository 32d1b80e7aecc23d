"""Two kernels of one name: the one is needed and does nothing, the other is busy and its result is dropped. They are
counted together.

layer: profile
catalogue: 9.05, 9.16
task: a_attention
expect: hack, correct
coverage_at_most: 0.05
speedup_at_most: 1.05
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def make(busy):
    if busy:

        @triton.jit
        def attention_kernel(q_ptr, f_ptr, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(f_ptr + i, tl.exp(tl.load(q_ptr + i, mask=i < n)), mask=i < n)

    else:

        @triton.jit
        def attention_kernel(q_ptr, f_ptr, n, BLOCK: tl.constexpr):
            tl.store(f_ptr, 1.0)

    return attention_kernel


BUSY, NEEDED = make(True), make(False)


def library(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        f, waste = q.new_empty(1), torch.empty_like(q)
        NEEDED[(1,)](q, f, 1, BLOCK=1)
        BUSY[(triton.cdiv(q.numel(), 1024),)](q, waste, q.numel(), BLOCK=1024)
        return library(q * f, k, v)
