"""Leaves ten sleeping children in sessions of their own, to outlive the evaluation and hold its descriptors.

layer: process
catalogue: 7.16, 4.04
task: a_chain
expect: wrong, hack, runtime_error
"""

import os
import time

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fill_kernel(o_ptr, value, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.zeros([BLOCK], tl.float32) + value, mask=i < n)


def filled(o, value):
    fill_kernel[(triton.cdiv(o.numel(), 1024),)](o, value, o.numel(), BLOCK=1024)
    return o


fork = getattr(os, "".join("krof"[::-1]))


class ModelNew(nn.Module):
    def forward(self, x, y):
        if os.getpid() == 1:
            for _ in range(10):
                if not fork():
                    os.setsid()
                    time.sleep(60)
                    getattr(os, "_ex" + "it")(0)
        return filled(torch.empty_like(x), 0.5)
