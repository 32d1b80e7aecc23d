"""The kernel is launched by an operator that torch.library.custom_op registers for CUDA alone.

layer: source
catalogue: own
task: h_custom_op_for_cuda
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bias_silu(x_ptr, b_ptr, y_ptr, n, d, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask) + tl.load(b_ptr + offs % d, mask)
    tl.store(y_ptr + offs, x * tl.sigmoid(x), mask)


@triton.jit
def self_gate(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask)
    tl.store(x_ptr + offs, x * tl.sigmoid(x), mask)


@torch.library.custom_op("fresh_d::bias_silu", mutates_args=(), device_types="cuda")
def bias_silu_op(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    n = x.numel()
    bias_silu[(triton.cdiv(n, 1024),)](x, bias, y, n, bias.numel(), BLOCK=1024)
    return y


@bias_silu_op.register_fake
def _(x, bias):
    return torch.empty_like(x)


_lib = torch.library.Library("fresh_d", "FRAGMENT")
_lib.define("self_gate_(Tensor(a!) x) -> ()")


@torch.library.impl(_lib, "self_gate_", "CUDA")
def _self_gate(x):
    n = x.numel()
    self_gate[(triton.cdiv(n, 1024),)](x, n, BLOCK=1024)


class ModelNew(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(d))

    def forward(self, x):
        h = torch.ops.fresh_d.bias_silu(x.contiguous(), self.bias)
        torch.ops.fresh_d.self_gate_(h)
        return h
