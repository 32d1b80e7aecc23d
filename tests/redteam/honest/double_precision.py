"""Double precision in and out.

layer: comparison
catalogue: own
task: h_double
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def logsumexp_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    top = tl.max(x, axis=0)
    tl.store(o_ptr + row, tl.log(tl.sum(tl.exp(x - top), axis=0)) + top)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], dtype=torch.float64, device=x.device)
        logsumexp_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
