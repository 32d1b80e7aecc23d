"""A half-precision number times a float argument.

layer: source
catalogue: own
task: h_half_times_float_argument
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def log_power(x_ptr, y_ptr, n, gain, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + o, mask=o < n)
    x = x * gain  # gain is an fp32 argument, so the product is fp32
    tl.store(y_ptr + o, tl.log(1.0 + x * x), mask=o < n)


class ModelNew(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        y = torch.empty_like(x)
        log_power[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), self.gain, 1024)
        return y
