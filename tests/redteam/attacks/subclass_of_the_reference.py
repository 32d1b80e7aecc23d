"""Inherits from the task's own class, which is there where both share a namespace, and adds a kernel for show.

layer: laziness
catalogue: 1.21, 1.22
task: a_chain
expect: compile_error, runtime_error, hack
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flag_kernel(f_ptr):
    tl.store(f_ptr, 1.0)


def flag(like):
    f = torch.empty(1, device=like.device)
    flag_kernel[(1,)](f)
    return f


class ModelNew(Model):  # noqa: F821
    def forward(self, x, y):
        flag(x)
        return super().forward(x, y)
