"""Works on a side stream behind a long sleep and turns torch.cuda.synchronize into nothing: outputs are finished after
the reply.

layer: clock
catalogue: 4.01, 6.16
task: a_chain
expect: hack, correct, wrong
speedup_at_most: 1.6
device: cuda
"""

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


vars(torch.cuda)["synchronize"] = lambda device=None: None


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.stream = torch.cuda.Stream()

    def forward(self, x, y):
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(200_000)
            chain(x, y)
            o = chain(x, y)
        torch.cuda._sleep(17_000)
        return o
