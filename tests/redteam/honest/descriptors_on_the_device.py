"""Tensor descriptors are made in the kernel, with an allocator for their scratch set by the host.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, shape=[rows, n], strides=[n, 1], block_shape=[ROWS, BLOCK])
    o_desc = tl.make_tensor_descriptor(o_ptr, shape=[rows, n], strides=[n, 1], block_shape=[ROWS, BLOCK])
    row = tl.program_id(0) * ROWS
    x = x_desc.load([row, 0]) / 1.7
    x = tl.where(tl.arange(0, BLOCK)[None, :] < n, x, float("-inf"))
    e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    o_desc.store([row, 0], e / tl.sum(e, axis=1, keep_dims=True))


def allocate(size: int, alignment: int, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


class ModelNew(nn.Module):
    def forward(self, x):
        triton.set_allocator(allocate)
        o = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        softmax_kernel[(triton.cdiv(x.shape[0], 4),)](x, o, *x.shape, ROWS=4, BLOCK=block)
        return o
