"""Loads and stores through tensor descriptors that are made on the host.

layer: source
catalogue: own
task: h_gelu_tanh_bias
expect: correct
coverage_at_least: 0.3
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def bias_gelu_residual(x_desc, b_ptr, r_desc, o_desc, cols, BM: tl.constexpr, BN: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    i = n + tl.arange(0, BN)
    x = x_desc.load([m, n]) + tl.load(b_ptr + i, mask=i < cols, other=0.0)[None, :]
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    y = x * tl.sigmoid(2.0 * inner) + r_desc.load([m, n])
    o_desc.store([m, n], y)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))

    def forward(self, x, residual):
        out = torch.empty_like(x)
        rows, cols = x.shape
        x_desc, r_desc, o_desc = (TensorDescriptor.from_tensor(t, [16, 64]) for t in (x, residual, out))
        bias_gelu_residual[(triton.cdiv(rows, 16), triton.cdiv(cols, 64))](
            x_desc, self.bias, r_desc, o_desc, cols, BM=16, BN=64
        )
        return out
