"""The library does attention inside torch.inference_mode, where composite operators reach the meter whole: bytes only, no flops, one launch. An own kernel scales q.

layer: profile
catalogue: own
task: a_attention
expect: correct
speedup_at_most: 1.5
coverage_at_most: 0.1
device: cpu
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, o_ptr, n, s, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n) * s, mask=i < n)


def scale(x, s):
    o = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 4096),)](x, o, x.numel(), s, BLOCK=4096)
    return o


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        with torch.inference_mode():
            return F.scaled_dot_product_attention(scale(q, q.shape[-1] ** -0.5), k, v, scale=1.0)
