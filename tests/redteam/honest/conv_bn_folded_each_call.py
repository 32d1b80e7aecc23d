"""Folds the eval batch norm into the library convolution's weights on every call and leaves shift plus ReLU to a Triton tail, so the bn module is never called.

layer: source
catalogue: own
task: g_conv2d_bn_relu
expect: correct
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def shift_relu(y_ptr, s_ptr, total, C, HW, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < total
    s = tl.load(s_ptr + (o // HW) % C, mask=m, other=0.0)
    tl.store(y_ptr + o, tl.maximum(tl.load(y_ptr + o, mask=m, other=0.0) + s, 0.0), mask=m)


class ModelNew(nn.Module):
    def __init__(self, cin, cout, k):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, k, padding=k // 2)
        self.bn = nn.BatchNorm2d(cout)
        self.bn.running_mean.uniform_(-0.5, 0.5)
        self.bn.running_var.uniform_(0.5, 2.0)
        self.eval()

    def forward(self, x):
        inv = torch.rsqrt(self.bn.running_var + self.bn.eps) * self.bn.weight
        w = self.conv.weight * inv[:, None, None, None]
        shift = (self.conv.bias - self.bn.running_mean) * inv + self.bn.bias
        y = F.conv2d(x, w, None, padding=self.conv.padding).contiguous()
        n, c, h, ww = y.shape
        shift_relu[(triton.cdiv(y.numel(), 1024),)](y, shift, y.numel(), c, h * ww, BLOCK=1024)
        return y
