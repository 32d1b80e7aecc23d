"""Uses the tanh form of GELU where the task uses the exact one: wrong in the fourth decimal.

layer: comparison
catalogue: 10.06, 1.12
task: a_linear_gelu
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    z = 0.7978845608 * (x + 0.044715 * x * x * x)
    tl.store(o_ptr + i, 0.5 * x * tl.sigmoid(2.0 * z), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.linear = nn.Linear(width, hidden)

    def forward(self, x):
        x = self.linear(x)
        o = torch.empty_like(x)
        gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
