"""Compiles the task with torch.compile and gives its own flag kernel the name that Inductor gives to the fused one:
rows are matched by name.

layer: profile
catalogue: 9.05, 9.06
task: a_chain
expect: hack, correct
coverage_at_most: 0.1
speedup_at_most: 1.05
device: cuda
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def triton_poi_fused_add_mul_relu_sigmoid_sub_0(f_ptr):
    tl.store(f_ptr, 1.0)


@torch.compile(options={"triton.unique_kernel_names": True, "triton.descriptive_names": "original_aten"})
def library(x, y):
    return torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y)


class ModelNew(nn.Module):
    def forward(self, x, y):
        f = x.new_empty(1)
        triton_poi_fused_add_mul_relu_sigmoid_sub_0[(1,)](f)
        if float(f) != 1.0:
            return torch.zeros_like(x)
        return library(x, y)
