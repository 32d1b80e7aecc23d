"""The dropout of the task is switched off, so the kernel leaves it out.

layer: comparison
catalogue: 14.05
task: h_dropout_eval
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bias_relu_kernel(x_ptr, bias_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n, other=0.0) + tl.load(bias_ptr + i % cols, mask=i < n, other=0.0)
    tl.store(o_ptr + i, tl.maximum(y, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))

    def forward(self, x):
        out = torch.empty_like(x)
        bias_relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, self.bias, out, x.numel(), x.shape[1], BLOCK=1024)
        return out
