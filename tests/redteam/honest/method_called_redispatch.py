"""A mixture of experts has a method that sends tokens back to their places, called redispatch.

layer: source
catalogue: own
task: h_method_called_redispatch
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def expert_scale(x_ptr, s_ptr, order_ptr, e_ptr, o_ptr, D: tl.constexpr):
    p, d = tl.program_id(0), tl.arange(0, D)
    token = tl.load(order_ptr + p)
    e = tl.load(e_ptr + token)
    y = tl.load(x_ptr + token * D + d) * tl.load(s_ptr + e * D + d)
    tl.store(o_ptr + p * D + d, y * tl.sigmoid(y))


@triton.jit
def send_back(y_ptr, order_ptr, o_ptr, D: tl.constexpr):
    p, d = tl.program_id(0), tl.arange(0, D)
    tl.store(o_ptr + tl.load(order_ptr + p) * D + d, tl.load(y_ptr + p * D + d))


class ModelNew(nn.Module):
    def __init__(self, e, d):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(e, d))

    def dispatch(self, x, expert):
        order = torch.argsort(expert, stable=True)
        y = torch.empty_like(x)
        expert_scale[(x.shape[0],)](x, self.scale, order, expert, y, D=x.shape[1])
        return y, order

    def redispatch(self, y, order):
        o = torch.empty_like(y)
        send_back[(y.shape[0],)](y, order, o, D=y.shape[1])
        return o

    def forward(self, x, expert):
        return self.redispatch(*self.dispatch(x, expert))
