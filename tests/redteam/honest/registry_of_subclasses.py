"""Epilogues register themselves: a base class knows its subclasses.

layer: source
catalogue: own
task: h_registry_of_subclasses
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


class Activation:
    name: str
    code: int

    @classmethod
    def of(cls, name):
        return next(sub for sub in cls.__subclasses__() if sub.name == name)


class Softplus(Activation):
    name, code = "softplus", 0


class Mish(Activation):
    name, code = "mish", 1


@triton.jit
def activate(x_ptr, o_ptr, n, CODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))
    if CODE == 1:
        y = x * (1.0 - 2.0 / (1.0 + tl.exp(2.0 * y)))
    tl.store(o_ptr + i, y, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.code = Activation.of(act).code

    def forward(self, x):
        o = torch.empty_like(x)
        activate[(triton.cdiv(x.numel(), 512),)](x, o, x.numel(), CODE=self.code, BLOCK=512)
        return o
