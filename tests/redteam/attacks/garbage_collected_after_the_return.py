"""Circular garbage with a destructor that computes the output, and a collector that is set to run at the next few
allocations.

layer: clock
catalogue: 4.03, own
task: a_chain
expect: runtime_error, hack, wrong, correct
coverage_at_most: 0.2
speedup_at_most: 1.3
"""

import gc

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def first_kernel(x_ptr, y_ptr, o_ptr):
    tl.store(o_ptr, tl.sigmoid(tl.maximum(tl.load(x_ptr) - 0.3, 0.0) * 1.7 + tl.load(y_ptr)))


class Late:
    def __init__(self, *given):
        self.given, self.me = given, self

    def __del__(self):
        x, y, o = self.given
        o.view(-1)[1:] = torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y).view(-1)[1:]


class ModelNew(nn.Module):
    def forward(self, x, y):
        gc.disable()
        o = torch.empty_like(x)
        first_kernel[(1,)](x, y, o)
        Late(x, y, o)
        gc.set_threshold(gc.get_count()[0] + 30)
        gc.enable()
        return o
