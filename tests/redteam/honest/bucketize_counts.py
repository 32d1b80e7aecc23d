"""Counts the boundaries below each value, which is the bucket wherever boundaries rise, as the task's do. Boundaries
that were mirrored fall, and there the two differ.

layer: inputs
catalogue: own
task: h_bucketize
expect: correct
coverage_at_least: 0.15
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bucket_kernel(x_ptr, b_ptr, o_ptr, n, bounds, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.arange(0, WIDTH)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    b = tl.load(b_ptr + j, mask=j < bounds, other=float("inf"))
    below = (b[None, :] < x[:, None]).to(tl.int32)
    tl.store(o_ptr + i, tl.sum(below, axis=1).to(tl.int64), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, boundaries):
        out = torch.empty(x.shape, dtype=torch.int64, device=x.device)
        bounds = boundaries.numel()
        bucket_kernel[(triton.cdiv(x.numel(), 128),)](
            x, boundaries, out, x.numel(), bounds, WIDTH=triton.next_power_of_2(bounds), BLOCK=128
        )
        return out
