"""The same containers as the task's, with a weight-normalised layer; the kernel does what stands between the products.

layer: replay
catalogue: 14.01
task: h_parametrized
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tanh_kernel(h_ptr, s_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.load(h_ptr + i, mask=i < n)
    e = tl.exp(-2.0 * tl.abs(h))
    t = (1.0 - e) / (1.0 + e)
    tl.store(o_ptr + i, tl.where(h < 0, -t, t) * tl.load(s_ptr + i % cols, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        up = torch.nn.utils.parametrizations.weight_norm(nn.Linear(width, hidden))
        self.layers = nn.ModuleDict({"up": up, "down": nn.Linear(hidden, width, bias=False)})
        self.scales = nn.ParameterDict({"one": torch.ones(hidden), "two": torch.rand(width)})

    def forward(self, x):
        h = self.layers["up"](x)
        o = torch.empty_like(h)
        tanh_kernel[(triton.cdiv(h.numel(), 1024),)](h, self.scales["one"], o, h.numel(), h.shape[1], BLOCK=1024)
        return self.layers["down"](o) * self.scales["two"]
