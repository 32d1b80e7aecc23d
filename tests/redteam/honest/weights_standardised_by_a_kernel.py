"""An own kernel standardises a convolution's weights, whatever the inputs are.

layer: profile
catalogue: own
task: h_standardised
expect: correct
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def standardise(w, y, L, B: tl.constexpr):
    r = tl.program_id(0)
    o = tl.arange(0, B)
    m = o < L
    v = tl.load(w + r * L + o, mask=m, other=0.0)
    mu = tl.sum(v, axis=0) / L
    d = tl.where(m, v - mu, 0.0)
    tl.store(y + r * L + o, d * tl.rsqrt(tl.sum(d * d, axis=0) / L + 1e-5), mask=m)


class ModelNew(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv = nn.Conv2d(i, o, 3, padding=1)

    def forward(self, x):
        w = self.conv.weight.contiguous()
        ws = torch.empty_like(w)
        L = w[0].numel()
        standardise[(w.shape[0],)](w, ws, L, triton.next_power_of_2(L))
        return F.conv2d(x, ws, self.conv.bias, padding=1)
