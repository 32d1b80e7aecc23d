"""Asks torch for deterministic algorithms, sets seeds, threads and flags when it is imported.

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import os

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


def softmax(x):
    o = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return o


torch.manual_seed(0)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.benchmark = False
torch.set_num_threads(1)
torch.set_grad_enabled(False)
torch.set_printoptions(precision=3)
os.environ.setdefault("TRITON_CACHE_AUTOTUNING", "0")


class ModelNew(nn.Module):
    def forward(self, x):
        return softmax(x)
