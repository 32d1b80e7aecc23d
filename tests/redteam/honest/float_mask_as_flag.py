"""The mask of floats holds ones and zeros alone, so the kernel asks whether it is positive, where the reference asks
whether it is zero. Masks that were moved to other numbers break it.

layer: inputs
catalogue: own
task: h_float_mask
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def masked_softmax_kernel(x_ptr, m_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    keep = tl.load(m_ptr + row * n + i, mask=i < n, other=1.0)
    x = tl.where(keep > 0.5, x, -1e9)
    x = tl.where(i < n, x, float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, scores, mask):
        out = torch.empty_like(scores)
        rows, n = scores.shape
        masked_softmax_kernel[(rows,)](scores, mask, out, n, BLOCK=triton.next_power_of_2(n))
        return out
