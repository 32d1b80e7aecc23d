"""Names outside of ASCII, raw strings, a docstring in several alphabets.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, ЧИСЛО: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, ЧИСЛО)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    r"""Überall \d+ Zeichen: λ, 温度."""

    def forward(self, x):
        λ = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, λ, x.shape[1], ЧИСЛО=triton.next_power_of_2(x.shape[1]))
        return λ
