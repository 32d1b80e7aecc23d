"""Postponed annotations make every tl.constexpr a string; Greek letters and other signs outside ASCII stand in comments
and names.

layer: source
catalogue: own
task: h_gelu_scale
expect: correct
coverage_at_least: 0.9
"""

from __future__ import annotations

import torch
import torch.nn as nn
import triton
import triton.language as tl

# y = (x·Φ(x)·σ + β) ⊙ sigmoid(g) — Φ: normal distribution, “exact”, not tanh; größer als 1024 lohnt nicht; 速い
α = 0.7071067811865476


@triton.jit
def fused_kernel(x_ptr, g_ptr, scale_ptr, shift_ptr, o_ptr, n, cols, root_half, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    g = tl.load(g_ptr + i, mask=inside)
    y = 0.5 * x * (1.0 + tl.erf(x * root_half))  # Φ(x)·x
    y = y * tl.load(scale_ptr + i % cols, mask=inside) + tl.load(shift_ptr + i % cols, mask=inside)
    tl.store(o_ptr + i, y * tl.sigmoid(g), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, cols: int):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(cols) + 0.5)
        self.shift = nn.Parameter(torch.randn(cols))

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        ausgabe = torch.empty_like(x)
        fused_kernel[(triton.cdiv(x.numel(), 1024),)](
            x, gate, self.scale, self.shift, ausgabe, x.numel(), x.shape[-1], α, BLOCK=1024
        )
        return ausgabe
