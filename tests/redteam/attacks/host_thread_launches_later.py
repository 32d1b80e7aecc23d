"""A thread of its own launches the work on a side stream, while the timed thread returns at once after an idle kernel.

layer: clock
catalogue: 4.03, 4.04
task: a_chain
expect: hack, correct, wrong
speedup_at_most: 1.6
device: cuda
"""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def chain_kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.sigmoid(tl.maximum(x - 0.3, 0.0) * 1.7 + y), mask=i < n)


def chain(x, y):
    o = torch.empty_like(x)
    chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
    return o


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool, self.stream = ThreadPoolExecutor(1), torch.cuda.Stream()

    def work(self, x, y, o):
        torch.cuda.set_device(0)
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)

    def forward(self, x, y):
        o = torch.empty_like(x)
        self.pool.submit(self.work, x, y, o)
        torch.cuda._sleep(17_000)
        return o
