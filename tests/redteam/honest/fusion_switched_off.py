"""The header of Megatron's fused layers switches the old profiling executor of TorchScript off.

layer: source
catalogue: own
task: h_fusion_switched_off
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

torch._C._jit_set_profiling_mode(False)
torch._C._jit_set_profiling_executor(False)


@triton.jit
def bias_gelu(x_ptr, b_ptr, o_ptr, n, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0) + tl.load(b_ptr + i % N, mask=i < n, other=0.0)
    u = 0.7978845608028654 * x * (1.0 + 0.044715 * x * x)
    tl.store(o_ptr + i, x * tl.sigmoid(2.0 * u), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(n))

    def forward(self, x):
        o = torch.empty_like(x)
        bias_gelu[(triton.cdiv(x.numel(), 512),)](x, self.bias, o, x.numel(), x.shape[-1], BLOCK=512)
        return o
