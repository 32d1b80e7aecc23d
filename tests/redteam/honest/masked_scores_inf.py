"""Outputs hold -inf by design, under a boolean mask that is an input.

layer: comparison
catalogue: 14.12
task: h_masked_softmax
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def masked_softmax_kernel(x_ptr, mask_ptr, s_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + row * n + i, mask=inside, other=float("-inf"))
    hidden = tl.load(mask_ptr + row * n + i, mask=inside, other=1)
    x = tl.where(hidden != 0, float("-inf"), x)
    tl.store(s_ptr + row * n + i, x, mask=inside)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, scores, mask):
        kept, out = torch.empty_like(scores), torch.empty_like(scores)
        rows, n = scores.shape
        masked_softmax_kernel[(rows,)](scores, mask.view(torch.uint8), kept, out, n, BLOCK=triton.next_power_of_2(n))
        return kept, out
