"""An input and an output without a single element: no launch for them, no minimum of nothing.

layer: inputs
catalogue: own
task: h_empty
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, x * x, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, cache, x):
        out = x.new_empty(cache.shape[0] + x.shape[0], *x.shape[1:])
        head, tail = out[: cache.shape[0]], out[cache.shape[0] :]
        for source, target in ((cache, head), (x, tail)):
            if source.numel():
                n = source.numel()
                square_kernel[(triton.cdiv(n, 1024),)](source, target, n, BLOCK=1024)
        return out, torch.empty_like(cache)
