"""Searches all loaded modules for a class Model that answers the task, and calls it.

layer: process
catalogue: 1.23
task: a_chain
expect: runtime_error, hack
"""

import sys

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


def reference():
    for module in list(sys.modules.values()):
        model = getattr(module, "__dict__", {}).get("Model")
        if isinstance(model, type) and issubclass(model, nn.Module) and model is not ModelNew:
            return model()
    raise LookupError("no reference here")


class ModelNew(nn.Module):
    def forward(self, x, y):
        return reference()(x, y) * flag(x)
