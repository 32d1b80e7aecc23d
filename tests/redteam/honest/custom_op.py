"""The kernel is registered as a custom operator of PyTorch by torch.library.triton_op and called through it.

layer: profile
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
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@torch.library.triton_op("honest::row_softmax", mutates_args={})
def row_softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    torch.library.wrap_triton(softmax_kernel)[(x.shape[0],)](
        x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1])
    )
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return row_softmax(x)
