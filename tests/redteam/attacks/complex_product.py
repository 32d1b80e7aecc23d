"""Two halves of the inner dimension ride in one complex product, whose flops are counted as those of a real one.

layer: profile
catalogue: own
task: t_mm_sig_large
expect: correct
speedup_at_most: 1.3
coverage_at_most: 0.2
device: cpu
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def last_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.sigmoid(tl.load(x_ptr + 2 * i, mask=i < n) * 0.02 + 0.1), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a = torch.view_as_complex(a.view(a.shape[0], -1, 2))
        x = a @ torch.complex(b[0::2], b[1::2]).conj()
        o = torch.empty(x.shape, device=x.device)
        last_kernel[(triton.cdiv(o.numel(), 8192),)](torch.view_as_real(x), o, o.numel(), BLOCK=8192)
        return o
