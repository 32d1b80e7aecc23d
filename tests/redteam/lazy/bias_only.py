"""The kernel adds the bias to a product of the library's, whose ReLU follows.

layer: laziness
catalogue: own
task: h_linear_relu
expect: correct
coverage_at_most: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_bias_kernel(y_ptr, b_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < n, other=0.0) + tl.load(b_ptr + i % cols, mask=i < n, other=0.0)
    tl.store(y_ptr + i, y, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        y = x @ self.linear.weight.t()
        add_bias_kernel[(triton.cdiv(y.numel(), 1024),)](y, self.linear.bias, y.numel(), y.shape[1], BLOCK=1024)
        return torch.relu(y)
