"""A helper that works grid and block out is remembered by functools.lru_cache, and the launcher is a functools.partial.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.9
"""

import functools

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@functools.cache
def shape_of_launch(rows: int, cols: int) -> tuple[tuple[int], int]:
    return (rows,), triton.next_power_of_2(cols)


def launch(kernel, *args, grid, **constants):
    kernel[grid](*args, **constants)


launch_softmax = functools.partial(launch, softmax_kernel)


class ModelNew(nn.Module):
    def forward(self, x):
        grid, block = shape_of_launch(*x.shape)
        o = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
        launch_softmax(x, o, x.shape[1], grid=grid, BLOCK=block)
        return o
