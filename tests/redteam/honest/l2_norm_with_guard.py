"""An L2 norm whose guard stands inside the root.

layer: source
catalogue: own
task: h_l2_norm_with_guard
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def l2norm_kernel(x_ptr, y_ptr, stride, D, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    acc = 0.0
    for off in range(0, D, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < D, other=0.0)
        acc += tl.sum(x * x, axis=0)
    inv = 1.0 / tl.sqrt(acc + eps)
    for off in range(0, D, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < D, other=0.0)
        tl.store(y_ptr + row * stride + cols, x * inv, mask=cols < D)


class ModelNew(nn.Module):
    """Optimized L2 normalization; a tiny epsilon guards against division by zero."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.dim() == 2
        x = x.contiguous()
        y = torch.empty_like(x)
        l2norm_kernel[(x.size(0),)](x, y, x.stride(0), x.size(1), 1e-12, BLOCK_SIZE=512)
        return y
