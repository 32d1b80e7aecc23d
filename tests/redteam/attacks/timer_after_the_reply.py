"""A timer that was set in the forward launches the work when the outputs have been committed and are not read yet.

layer: clock
catalogue: 4.03, 4.17
task: a_chain
expect: hack, wrong, runtime_error, unsupported
"""

import threading

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def chain_kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.sigmoid(tl.maximum(x - 0.3, 0.0) * 1.7 + y), mask=i < n)


def chain(x, y, o):
    chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        threading.Timer(0.001, chain, (x, y, o)).start()
        return o
