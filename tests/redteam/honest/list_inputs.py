"""Lists of tensors and of numbers go in, a tensor and a list come out; one launch for each list element from a Python
loop.

layer: inputs
catalogue: own
task: h_lists
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def accumulate_kernel(p_ptr, acc_ptr, t_ptr, n, weight, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p = tl.load(p_ptr + i, mask=i < n, other=0.0)
    tl.store(t_ptr + i, 2.0 * tl.sigmoid(2.0 * p) - 1.0, mask=i < n)
    acc = p * weight
    if not FIRST:
        acc += tl.load(acc_ptr + i, mask=i < n, other=0.0)
    tl.store(acc_ptr + i, acc, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, parts, weights):
        total, squashed = torch.empty_like(parts[0]), [torch.empty_like(p) for p in parts]
        for step, (part, weight, out) in enumerate(zip(parts, weights, squashed)):
            n = part.numel()
            accumulate_kernel[(triton.cdiv(n, 1024),)](part, total, out, n, float(weight), FIRST=step == 0, BLOCK=1024)
        return total, squashed
