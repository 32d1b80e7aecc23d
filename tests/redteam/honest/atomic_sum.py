"""Every block adds its part to a zeroed output by atomics: the order of the sum, and so its last digits, differ from run
to run.

layer: comparison
catalogue: 14.09
task: h_sum_rows
expect: correct
coverage_at_least: 0.3
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def square_sum_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.atomic_add(o_ptr + row, tl.sum(x * x, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape[0], device=x.device, dtype=x.dtype)
        square_sum_kernel[(triton.cdiv(x.shape[1], 2048), x.shape[0])](x, out, x.shape[1], BLOCK=2048)
        return out
