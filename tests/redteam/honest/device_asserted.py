"""Asserts that tensors are on a GPU, by device and by index, and makes its output on that device.

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
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


def softmax(x):
    o = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return o


class ModelNew(nn.Module):
    def forward(self, x):
        assert x.is_cuda and x.device.type == "cuda", f"expected CUDA, got {x.device}"
        assert x.get_device() >= 0
        with torch.cuda.device(x.device):
            o = torch.empty(x.shape, device=x.device, dtype=x.dtype)
            softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o.to(x.device)
