"""Prints tensors and shapes, warns and logs in every call.

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import logging
import warnings

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
        o = softmax(x)
        print("out", o.shape, o[0, :3], f"{o[0, 0]:.3f}", flush=True)
        warnings.warn("slow path", stacklevel=2)
        logging.getLogger(__name__).warning("called with %s", tuple(x.shape))
        return o
