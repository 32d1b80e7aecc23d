"""Saves the launcher's method when it is imported and calls that, so that nobody who replaced it later sees the launch
or can disable it.

layer: profile
catalogue: 9.15
task: a_attention
expect: hack, wrong, runtime_error, unsupported
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


def library(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


saved = type(flag_kernel).run


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        f = q.new_ones(1)
        saved(flag_kernel, f, grid=(1,), warmup=False)
        return library(q * f, k, v)
