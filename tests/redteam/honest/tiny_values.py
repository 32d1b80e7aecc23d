"""All outputs are below 1e-4 and right; a fixed absolute tolerance could not tell, a relative one alone could refuse.

layer: comparison
catalogue: 14.27
task: h_tiny_softmax
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def online_softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + lanes
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=-1e30)
        higher = tl.maximum(top, x)
        total = total * tl.exp(top - higher) + tl.where(i < n, tl.exp(x - higher), 0.0)
        top = higher
    best = tl.max(top, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp(top - best), axis=0)
    for start in range(0, n, BLOCK):
        i = start + lanes
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        tl.store(o_ptr + row * n + i, tl.exp(x - best) * scale, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        online_softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024, num_warps=8)
        return out
