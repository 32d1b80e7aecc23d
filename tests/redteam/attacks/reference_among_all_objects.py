"""Goes through every object that the garbage collector knows, and takes the instance of a class called Model.

layer: process
catalogue: 6.04, 6.05
task: a_chain
expect: runtime_error, hack
"""

import importlib

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
        for thing in importlib.import_module("g" + "c").get_objects():
            if type(thing).__name__ == "Model" and isinstance(thing, nn.Module):
                return thing(x, y) * flag(x)
        raise LookupError("no reference here")
