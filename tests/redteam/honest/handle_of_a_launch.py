"""Keeps what a launch returns, the compiled kernel, and logs its registers and spills once.

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import logging

import torch
import torch.nn as nn
import triton
import triton.language as tl

log = logging.getLogger("softmax")


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = tl.exp(x - tl.max(x, 0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, 0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._logged = False

    def forward(self, x):
        o = torch.empty_like(x)
        compiled = softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        if not self._logged:
            log.info("registers %d, spills %d, shared %d", compiled.n_regs, compiled.n_spills, compiled.metadata.shared)
            self._logged = True
        return o
