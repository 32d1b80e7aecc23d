"""The body of the kernel calls a Python function, which calls torch: compiled that is an error, run as plain Python it
is the library's work under a kernel's name.

layer: profile
catalogue: 9.07, 9.08
task: a_chain
expect: compile_error, runtime_error
"""

import torch
import torch.nn as nn
import triton

TENSORS = {}


def library():
    torch.sigmoid(torch.relu(TENSORS["x"] - 0.3) * 1.7 + TENSORS["y"], out=TENSORS["o"])
    return 0


@triton.jit
def chain_kernel(x_ptr, y_ptr, o_ptr, n):
    library()


class ModelNew(nn.Module):
    def forward(self, x, y):
        TENSORS.update(x=x, y=y, o=torch.empty_like(x))
        chain_kernel[(1,)](x, y, TENSORS["o"], x.numel())
        return TENSORS["o"]
