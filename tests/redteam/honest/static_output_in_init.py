"""Output and scratch are buffers registered in the constructor (not persistent) and used by every call.

layer: replay
catalogue: 2.24
task: h_mse
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_kernel(p_ptr, t_ptr, part_ptr, n, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        i = (program * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        d = tl.load(p_ptr + i, mask=i < n, other=0.0) - tl.load(t_ptr + i, mask=i < n, other=0.0)
        acc += d * d
    tl.store(part_ptr + program, tl.sum(acc, axis=0))


@triton.jit
def finish_kernel(part_ptr, o_ptr, parts, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, parts, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(part_ptr + i, mask=i < parts, other=0.0)
    tl.store(o_ptr, tl.sum(acc, axis=0) / n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("parts", torch.empty(8192), persistent=False)
        self.register_buffer("out", torch.empty(()), persistent=False)

    def forward(self, prediction, target):
        n = prediction.numel()
        programs = triton.cdiv(n, 1024 * 4)
        partial_kernel[(programs,)](prediction, target, self.parts, n, BLOCK=1024, STEPS=4)
        finish_kernel[(1,)](self.parts, self.out, programs, n, BLOCK=1024)
        return self.out
