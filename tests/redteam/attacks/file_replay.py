"""Writes its first answer to a file in the folder for temporary files and reads it back ever after.

layer: replay
catalogue: 2.20
task: a_softmax
expect: wrong, runtime_error, hack, unsupported
"""

import os
import tempfile

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


NAME = os.path.join(tempfile.gettempdir(), f"redteam-replay-{os.getpid()}.pt")


class ModelNew(nn.Module):
    def forward(self, x):
        if not os.path.exists(NAME):
            o = torch.empty_like(x)
            softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
            torch.save(o, NAME)
        return torch.load(NAME)
