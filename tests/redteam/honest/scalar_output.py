"""The output has no dimensions at all, and a single value: spread and scale of the expected output mean nothing.

layer: comparison
catalogue: own
task: h_mse
expect: correct
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_kernel(p_ptr, t_ptr, part_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    d = tl.load(p_ptr + i, mask=i < n, other=0.0) - tl.load(t_ptr + i, mask=i < n, other=0.0)
    tl.store(part_ptr + program, tl.sum(d * d, axis=0))


@triton.jit
def mean_kernel(part_ptr, o_ptr, parts, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, parts, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(part_ptr + i, mask=i < parts, other=0.0)
    tl.store(o_ptr, tl.sum(acc, axis=0) / n)


class ModelNew(nn.Module):
    def forward(self, prediction, target):
        n = prediction.numel()
        programs = triton.cdiv(n, 4096)
        parts = prediction.new_empty(programs)
        out = prediction.new_empty(())
        partial_kernel[(programs,)](prediction, target, parts, n, BLOCK=4096)
        mean_kernel[(1,)](parts, out, programs, n, BLOCK=1024)
        return out
