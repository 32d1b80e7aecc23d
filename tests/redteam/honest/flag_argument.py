"""A flag goes to the kernel as a runtime argument: True is no tl.constexpr.

layer: source
catalogue: own
task: h_flag_argument
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit(
    do_not_specialize=["n"],
    repr=lambda spec: "scaled_leaky",
    launch_metadata=lambda grid, kernel, args: {"name": "leaky"},
)
def scaled_leaky(
    x_ptr,
    s_ptr,
    o_ptr,
    n,
    slope,
    flag,
    step,
    BLOCK: "tl.constexpr" = 128,
) -> None:
    i = tl.program_id(0) * step + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = tl.where(x > 0, x * tl.load(s_ptr), x * slope)
    if flag:
        tl.store(o_ptr + i, y, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        o = torch.empty_like(x)
        scaled_leaky[(triton.cdiv(x.numel(), 128),)](x, s, o, x.numel(), 0.25, True, 128)
        return o
