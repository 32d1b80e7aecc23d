"""Autotuned over block, warps and stages with a key: the first call of every shape runs many launches.

layer: clock
catalogue: 14.22
task: h_gelu_scale
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK": b}, num_warps=w, num_stages=s) for b, w, s in ((256, 4, 2), (1024, 4, 3), (2048, 8, 2))
]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def fused_kernel(x_ptr, g_ptr, scale_ptr, shift_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    g = tl.load(g_ptr + i, mask=inside)
    scale = tl.load(scale_ptr + i % cols, mask=inside)
    shift = tl.load(shift_ptr + i % cols, mask=inside)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(o_ptr + i, (y * scale + shift) * tl.sigmoid(g), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(cols) + 0.5)
        self.shift = nn.Parameter(torch.randn(cols))

    def forward(self, x, gate):
        out = torch.empty_like(x)
        n = x.numel()
        fused_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](
            x, gate, self.scale, self.shift, out, n, x.shape[-1]
        )
        return out
