"""The kernel scales and masks the scores; both products and the softmax are the library's.

layer: laziness
catalogue: own
task: h_attention
expect: correct
coverage_at_most: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def causal_kernel(s_ptr, n, length, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, col = (i // length) % length, i % length
    s = tl.load(s_ptr + i, mask=i < n, other=0.0) * scale
    tl.store(s_ptr + i, tl.where(col <= row, s, float("-inf")), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        scores = q @ k.transpose(-2, -1)
        n, length = scores.numel(), scores.shape[-1]
        causal_kernel[(triton.cdiv(n, 1024),)](scores, n, length, q.shape[-1] ** -0.5, BLOCK=1024)
        return torch.softmax(scores, dim=-1) @ v
