"""Active dropout: the mask comes from torch's own dropout of ones, so that the same seed gives the same mask; everything
else is one kernel.

layer: comparison
catalogue: 14.05
task: h_dropout_train
expect: correct
coverage_at_least: 0.2
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, bias_ptr, o_ptr, n, cols, p, mask_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n, other=0.0) + tl.load(bias_ptr + i % cols, mask=i < n, other=0.0)
    y = tl.maximum(y, 0.0) + 0.1
    keep = tl.load(mask_ptr + i, mask=i < n, other=0.0) > 0
    tl.store(o_ptr + i, tl.where(keep, y / (1.0 - p), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, cols, p):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))
        self.dropout = nn.Dropout(p)

    def forward(self, x):
        p = self.dropout.p if self.training else 0.0
        out = torch.empty_like(x)
        n = x.numel()
        mask = self.dropout(torch.ones_like(x))
        dropout_kernel[(triton.cdiv(n, 1024),)](x, self.bias, out, n, x.shape[1], p, mask, BLOCK=1024)
        return out
