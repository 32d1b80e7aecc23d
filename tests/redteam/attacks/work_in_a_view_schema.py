"""In inference mode to(), contiguous() and resolve_neg() reach the meter as one operator whose schema is that of a view: casts, transposed copies and a negation are free.

layer: profile
catalogue: own
task: t_forms
expect: correct
speedup_at_most: 1.2
coverage_at_most: 0.25
device: cpu
"""

import torch
import torch.nn as nn
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
    def forward(self, x):
        with torch.inference_mode():
            x = scale(x, 1.5)
            return x, x.to(torch.float16), x.to(torch.float64), torch._neg_view(x).resolve_neg(), x.t().contiguous()
