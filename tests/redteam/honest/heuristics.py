"""Block size and a flag are computed by triton.heuristics from the arguments.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.heuristics(
    {
        "BLOCK": lambda args: triton.next_power_of_2(args["n"]),
        "EVEN": lambda args: args["n"] == triton.next_power_of_2(args["n"]),
    }
)
@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + row * n + i) / 1.7
    else:
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1])
        return out
