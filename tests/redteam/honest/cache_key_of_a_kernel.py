"""Tuned settings are filed under the kernel's cache_key and the hash of its source, which every JITFunction has.

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import hashlib

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = tl.exp(x - tl.max(x, 0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, 0), mask=i < n)


TUNED = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = softmax_kernel.cache_key[:12], hashlib.sha256(softmax_kernel.src.encode()).hexdigest()[:12], x.shape
        warps = TUNED.setdefault(key, 4 if x.shape[1] < 2048 else 8)
        o = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=warps)
        return o
