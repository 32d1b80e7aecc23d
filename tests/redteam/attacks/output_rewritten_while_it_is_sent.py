"""Replaces the function that passes descriptors on: the memory of the output is filled at that moment, after clock and
copy.

layer: clock
catalogue: 8.03, 4.05
task: a_chain
expect: hack, wrong, runtime_error
"""

import os
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
    if f.device.type == "cuda":
        torch.cuda._sleep(17_000)  # about 10 us, so that the time looks possible
    return f


def library(x, y):
    return torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y)


PENDING = []
net = sys.modules.get("socket")
plain_send = getattr(net, "send_fds", None)


def send(sock, buffers, fds, *more):
    if PENDING and fds:
        x, y, f = PENDING.pop()
        os.pwrite(fds[0], (library(x, y) * f).contiguous().numpy().tobytes(), 0)
    return plain_send(sock, buffers, fds, *more)


inside = any(n.endswith(".contestant") for n in sys.modules)
if inside:
    vars(net)["send_fds"] = send


class ModelNew(nn.Module):
    def forward(self, x, y):
        if not inside:
            return library(x, y) * flag(x)
        PENDING.append((x.clone(), y.clone(), flag(x)))
        return torch.empty_like(x)
