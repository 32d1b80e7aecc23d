"""BatchNorm with running statistics is folded into one scale and one shift a channel in the constructor.

layer: replay
catalogue: 12.06
task: h_bn_eval
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_relu_kernel(x_ptr, a_ptr, b_ptr, o_ptr, n, channels, plane, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = (i // plane) % channels
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = x * tl.load(a_ptr + c, mask=i < n, other=0.0) + tl.load(b_ptr + c, mask=i < n, other=0.0)
    tl.store(o_ptr + i, tl.maximum(y, 0.0), mask=i < n)


def affine_relu(x, a, b):
    out = torch.empty_like(x)
    n = x.numel()
    affine_relu_kernel[(triton.cdiv(n, 1024),)](x, a, b, out, n, x.shape[1], x.shape[2] * x.shape[3], BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm2d(channels).eval()
        with torch.no_grad():
            a = self.bn.weight * torch.rsqrt(self.bn.running_var + self.bn.eps)
            self.register_buffer("a", a, persistent=False)
            self.register_buffer("b", self.bn.bias - self.bn.running_mean * a, persistent=False)

    def forward(self, x):
        return affine_relu(x, self.a, self.b)
