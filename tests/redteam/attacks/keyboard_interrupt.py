"""Raises KeyboardInterrupt, as if a person had stopped the run.

layer: process
catalogue: 7.15
task: a_chain
expect: runtime_error, hack
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flag_kernel(f_ptr):
    tl.store(f_ptr, 1.0)


def flag(like):
    f = torch.empty(1, device=like.device)
    flag_kernel[(1,)](f)
    return f


class ModelNew(nn.Module):
    def forward(self, x, y):
        flag(x)
        raise KeyboardInterrupt
