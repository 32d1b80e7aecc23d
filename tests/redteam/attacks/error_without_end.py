"""Raises an exception that is its own cause: whoever follows the causes never comes back.

layer: process
catalogue: 7.15, own
task: a_chain
expect: runtime_error, timeout, hack
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
        first, second = ValueError("a"), ValueError("b")
        first.__cause__, second.__cause__ = second, first
        raise first
