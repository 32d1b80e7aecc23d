"""Rows share one sum behind a lock of atomic_cas and atomic_xchg.

layer: source
catalogue: own
task: h_mse
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loss_kernel(a_ptr, b_ptr, o_ptr, lock_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.load(a_ptr + i, mask=i < n, other=0.0) - tl.load(b_ptr + i, mask=i < n, other=0.0)
    part = tl.sum(d * d, axis=0) * scale
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(o_ptr, tl.load(o_ptr) + part)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


class ModelNew(nn.Module):
    def forward(self, prediction, target):
        o, lock = prediction.new_zeros(()), torch.zeros(1, dtype=torch.int32, device=prediction.device)
        n = prediction.numel()
        loss_kernel[(triton.cdiv(n, 1024),)](prediction, target, o, lock, n, 1.0 / n, BLOCK=1024)
        return o
