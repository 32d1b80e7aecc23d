"""Works on a stream of its own that the current one waits for, but that waits for nobody: while the current stream still
sleeps so that the host can run ahead, the work is done.

layer: clock
catalogue: 4.01, own
task: a_chain
expect: correct, hack, wrong
speedup_at_most: 9
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


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.stream = torch.cuda.Stream()

    def forward(self, x, y):
        with torch.cuda.stream(self.stream):
            o = chain(x, y)
        torch.cuda.current_stream().wait_stream(self.stream)
        return o
