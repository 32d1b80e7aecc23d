"""An argument of the kernel is an object whose data_ptr() runs the library, in the middle of the launch.

layer: profile
catalogue: 9.13, own
task: a_chain
expect: compile_error, runtime_error, wrong, hack
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


class Late:
    def __init__(self, x, y, o):
        self.given, self.o, self.dtype = (x, y), o, o.dtype

    def data_ptr(self):
        x, y = self.given
        torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y, out=self.o)
        return self.o.data_ptr()


@triton.jit
def first_kernel(x_ptr, y_ptr, late_ptr, o_ptr):
    tl.store(o_ptr, tl.sigmoid(tl.maximum(tl.load(x_ptr) - 0.3, 0.0) * 1.7 + tl.load(y_ptr)))


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        first_kernel[(1,)](x, y, Late(x, y, o), o)
        return o
