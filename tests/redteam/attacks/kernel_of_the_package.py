"""Launches a jitted function that comes with Triton, for show: it is nobody's kernel.

layer: profile
catalogue: 9.10, 9.09
task: a_chain
expect: hack, runtime_error, compile_error
"""

import torch
import torch.nn as nn
import triton.language as tl


def library(x, y):
    return torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y)


class ModelNew(nn.Module):
    def forward(self, x, y):
        tl.sigmoid[(1,)](1.0)
        return library(x, y)
