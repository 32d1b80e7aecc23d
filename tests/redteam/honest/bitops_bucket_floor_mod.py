"""Integer-only kernel with int32 wraparound and a Python-style remainder built from C-style %, writing a bool output through an int8 view.

layer: source
catalogue: own
task: g_bitops_int
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bucket(x_ptr, b_ptr, f_ptr, n, nb, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    x = tl.load(x_ptr + o, mask=m, other=0)
    h = x ^ (x >> 7)
    h = (h & 0xFFFF) * 40503
    r = h % nb
    r = tl.where(r < 0, r + nb, r)
    tl.store(b_ptr + o, r, mask=m)
    tl.store(f_ptr + o, (r < nb // 2).to(tl.int8), mask=m)


class ModelNew(nn.Module):
    def __init__(self, buckets):
        super().__init__()
        self.buckets = buckets

    def forward(self, x):
        b = torch.empty_like(x)
        f = torch.empty(x.shape, dtype=torch.bool, device=x.device)
        bucket[(triton.cdiv(x.numel(), 1024),)](
            x.contiguous(), b, f.view(torch.int8), x.numel(), self.buckets, BLOCK=1024
        )
        return b, f
