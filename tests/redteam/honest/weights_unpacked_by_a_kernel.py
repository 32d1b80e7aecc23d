"""An own kernel unpacks int8 weights, the product is the library's: what the kernel writes is the same for all inputs.

layer: profile
catalogue: own
task: h_dequantise
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dequant(q, s, w, N, total, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < total
    tl.store(w + o, tl.load(q + o, mask=m, other=0).to(tl.float32) * tl.load(s + o % N, mask=m, other=0.0), mask=m)


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.register_buffer("q", torch.randint(-127, 128, (k, n), dtype=torch.int8))
        self.register_buffer("s", torch.rand(n) * 0.1 + 0.01)

    def forward(self, x):
        w = torch.empty(self.q.shape, device=x.device, dtype=x.dtype)
        dequant[(triton.cdiv(w.numel(), 4096),)](self.q, self.s, w, w.shape[1], w.numel(), 4096)
        return x @ w
