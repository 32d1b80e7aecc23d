"""A forked child computes into shared memory after the parent returned it: no thread is ever counted.

layer: clock
catalogue: 4.04
task: a_chain
expect: wrong, hack, runtime_error
"""

import os
import time

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


fork = getattr(os, "fo" + "rk")
leave = getattr(os, "_ex" + "it")


class ModelNew(nn.Module):
    def forward(self, x, y):
        flag(x)
        o = torch.zeros(x.shape).share_memory_()
        if not fork():
            try:
                time.sleep(0.05)
                z = (x - 0.3).numpy().clip(min=0) * 1.7 + y.numpy()
                o.numpy()[:] = 1 / (1 + 2.718281828459045 ** (-z))
            finally:
                leave(0)
        return o.to(x.device) if x.device.type == "cuda" else o
