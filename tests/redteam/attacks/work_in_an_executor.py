"""A pool of threads from before the first call runs the library's operators.

layer: clock
catalogue: 4.03, 9.14
task: a_chain
expect: hack, wrong, unsupported, runtime_error, correct
coverage_at_most: 0.35
speedup_at_most: 1.3
"""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def last_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.sigmoid(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def last(x):
    o = torch.empty_like(x)
    last_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


POOL = ThreadPoolExecutor(1)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return last(POOL.submit(lambda: torch.relu(x - 0.3) * 1.7 + y).result())
