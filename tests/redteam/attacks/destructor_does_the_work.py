"""An object that dies after the call computes the output in its destructor; the caller's own list of inputs keeps it
alive till then.

layer: clock
catalogue: 4.03, own
task: a_chain
expect: wrong, hack, runtime_error
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
    if f.device.type == "cuda":
        torch.cuda._sleep(17_000)  # about 10 us, so that the time looks possible
    return f


def library(x, y):
    return torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y)


class Work:
    def __init__(self, *given):
        self.given = given

    def __del__(self):
        x, y, o, f = self.given
        o.copy_(library(x, y) * f)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o, f = torch.zeros_like(x), flag(x)
        y.work = Work(x, y.view(y.shape), o, f)
        return o
