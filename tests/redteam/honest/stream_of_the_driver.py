"""Asks Triton's driver for the current stream and the device interface, as launchers that go around torch do.

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

driver = triton.runtime.driver.active


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
        self.seen = set()

    def forward(self, x):
        device = driver.get_current_device()
        self.seen.add(driver.get_current_stream(device))
        o = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
