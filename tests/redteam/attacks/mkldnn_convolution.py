"""torch.mkldnn_convolution, which no GPU has and the flop counter does not know, does the convolution at the price of its bytes.

layer: profile
catalogue: own
task: t_conv_relu
expect: correct
speedup_at_most: 1.5
coverage_at_most: 0.2
device: cpu
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def epilogue_kernel(x_ptr, b_ptr, o_ptr, C, HW: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    b = tl.load(b_ptr + p % C)
    for s in range(0, HW, BLOCK):
        i = s + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + p * HW + i, mask=i < HW)
        tl.store(o_ptr + p * HW + i, tl.maximum(x + b, 0.0) * 1.5, mask=i < HW)


class ModelNew(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.bias = nn.Parameter(torch.randn(cout, 1, 1))

    def forward(self, x):
        y = torch.mkldnn_convolution(x, self.conv.weight, None, [1, 1], [1, 1], [1, 1], 1)
        o = torch.empty_like(y)
        n, c, h, w = y.shape
        epilogue_kernel[(n * c,)](y, self.bias, o, c, HW=h * w, BLOCK=1024)
        return o
