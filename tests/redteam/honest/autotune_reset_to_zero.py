"""Autotuned atomics: the buffer is zeroed between the trials by reset_to_zero, without which the first answer would be a
multiple of the right one.

layer: clock
catalogue: 14.22
task: h_mse
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 1024}, num_warps=8)],
    key=["n"],
    reset_to_zero=["o_ptr"],
)
@triton.jit
def mse_kernel(p_ptr, t_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = tl.load(p_ptr + i, mask=i < n, other=0.0)
    t = tl.load(t_ptr + i, mask=i < n, other=0.0)
    d = p - t
    tl.atomic_add(o_ptr, tl.sum(d * d, axis=0) / n)


class ModelNew(nn.Module):
    def forward(self, prediction, target):
        out = torch.zeros((), device=prediction.device)
        n = prediction.numel()
        mse_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](prediction, target, out, n)
        return out
