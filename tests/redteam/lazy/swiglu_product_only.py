"""Three products and the SiLU by the library, the product of gate and value by a kernel.

layer: laziness
catalogue: own
task: h_mlp
expect: correct
coverage_at_most: 0.4
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def product_kernel(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + i, mask=i < n, other=0.0), tl.load(b_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, a * b, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        gate, up = F.silu(self.gate(x)), self.up(x)
        hidden = torch.empty_like(up)
        product_kernel[(triton.cdiv(up.numel(), 1024),)](gate, up, hidden, up.numel(), BLOCK=1024)
        return self.down(hidden)
