"""Imports under try, with what older versions of Triton offer, and an optional package that is not there.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.9
"""

import importlib.util

import torch
import torch.nn as nn
import triton
import triton.language as tl

try:
    from triton.language.extra import libdevice
except ImportError:
    from triton.language.math import libdevice

try:
    import apex_kernels_that_nobody_has as apex
except ImportError:
    apex = None

HAS_TRITON = importlib.util.find_spec("triton") is not None


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = libdevice.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


def softmax(x):
    o = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return o


class ModelNew(nn.Module):
    def forward(self, x):
        return apex.softmax(x) if apex else softmax(x) if HAS_TRITON else torch.softmax(x / 1.7, -1)
