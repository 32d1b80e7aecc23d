"""Returns an empty buffer, and a thread that was started in the call fills it a moment later.

layer: clock
catalogue: 4.03
task: a_chain
expect: wrong, hack, runtime_error, unsupported
"""

import threading
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


def library(x, y):
    return torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o, f = torch.zeros_like(x), flag(x)

        def fill():
            time.sleep(0.05)
            o.copy_(library(x, y) * f)

        threading.Thread(target=fill, daemon=True).start()
        return o
