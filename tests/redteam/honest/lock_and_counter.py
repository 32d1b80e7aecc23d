"""The last program to finish adds the partial sums up: it knows by an atomic counter, which it puts back to zero for the
next call.

layer: replay
catalogue: own
task: h_mse
expect: correct
coverage_at_least: 0.4
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mse_kernel(
    p_ptr, t_ptr, part_ptr, count_ptr, o_ptr, n, STEPS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        i = (program * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        d = tl.load(p_ptr + i, mask=i < n, other=0.0) - tl.load(t_ptr + i, mask=i < n, other=0.0)
        acc += d * d
    tl.store(part_ptr + program, tl.sum(acc, axis=0))
    tl.debug_barrier()
    done = tl.atomic_add(count_ptr, 1, sem="acq_rel")
    if done == programs - 1:
        j = tl.arange(0, PARTS)
        parts = tl.load(part_ptr + j, mask=j < programs, other=0.0, cache_modifier=".cg")
        tl.store(o_ptr, tl.sum(parts, axis=0) / n)
        tl.store(count_ptr, 0)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("lock", torch.zeros(1, dtype=torch.int32), persistent=False)

    def forward(self, prediction, target):
        n = prediction.numel()
        programs = triton.cdiv(n, 1024 * 8)
        parts = torch.empty(programs, device=prediction.device)
        out = torch.empty((), device=prediction.device)
        mse_kernel[(programs,)](
            prediction, target, parts, self.lock, out, n, STEPS=8, PARTS=triton.next_power_of_2(programs), BLOCK=1024
        )
        return out
