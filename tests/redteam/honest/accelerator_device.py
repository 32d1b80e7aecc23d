"""Asks torch.accelerator instead of torch.cuda.

layer: source
catalogue: own
task: h_accelerator_device
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

DEVICE = torch.accelerator.current_accelerator()
assert torch.accelerator.is_available() and DEVICE.type == "cuda"


@triton.jit
def cosine(x_ptr, p_ptr, y_ptr, D, B: tl.constexpr):
    r, o = tl.program_id(0), tl.arange(0, B)
    x = tl.load(x_ptr + r * D + o, mask=o < D, other=0.0)
    p = tl.load(p_ptr + o, mask=o < D, other=0.0)
    den = tl.maximum(tl.sqrt(tl.sum(x * x)), 1e-8) * tl.maximum(tl.sqrt(tl.sum(p * p)), 1e-8)
    tl.store(y_ptr + r, 1 - tl.sum(x * p) / den)


class ModelNew(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.proto = nn.Parameter(torch.randn(d))

    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        with torch.accelerator.device_index(x.device.index):
            cosine[(x.shape[0],)](x, self.proto, y, x.shape[1], triton.next_power_of_2(x.shape[1]))
        return y
