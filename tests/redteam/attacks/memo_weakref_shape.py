"""Honest Triton cumsum, but the answer is kept against a weak reference to the input and its version counter: an input handed in again unchanged costs nothing, and weights changed in between are not noticed.

layer: replay
catalogue: own
task: w_row_cumsum
expect: wrong, hack, correct
speedup_at_most: 2.3
"""

import weakref

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scan_kernel(x, g, o, cols, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < cols
    v = tl.load(x + r * cols + c, mask=m, other=0.0) * tl.load(g + c, mask=m, other=0.0)
    tl.store(o + r * cols + c, tl.cumsum(v, 0), mask=m)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(cols) + 0.5)
        self.seen = lambda: None
        self.version = -1

    def forward(self, x):
        if self.seen() is not x or self.version != x._version:
            self.seen, self.version = weakref.ref(x), x._version
            self.out = torch.empty_like(x)
            scan_kernel[(x.shape[0],)](
                x.contiguous(), self.gain, self.out, x.shape[1], B=triton.next_power_of_2(x.shape[1])
            )
        return self.out.clone()
