"""The library's module holds the parameters, the kernel does its work: no call of the module is ever made.

layer: replay
catalogue: 14.01
task: h_layer_norm
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, r_ptr, w_ptr, b_ptr, o_ptr, n, eps, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + row * n + i, mask=inside, other=0.0) + tl.load(r_ptr + row * n + i, mask=inside, other=0.0)
    d = tl.where(inside, x - tl.sum(x, axis=0) / n, 0.0)
    y = d * tl.rsqrt(tl.sum(d * d, axis=0) / n + eps)
    w, b = tl.load(w_ptr + i, mask=inside), tl.load(b_ptr + i, mask=inside)
    tl.store(o_ptr + row * n + i, y * w + b, mask=inside)


def layer_norm(x, residual, weight, bias, eps=1e-5):
    out = torch.empty_like(x)
    rows, n = x.shape
    layer_norm_kernel[(rows,)](x, residual, weight, bias, out, n, eps, BLOCK=triton.next_power_of_2(n))
    return out


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, x, residual):
        return layer_norm(x, residual, self.norm.weight, self.norm.bias, self.norm.eps)
