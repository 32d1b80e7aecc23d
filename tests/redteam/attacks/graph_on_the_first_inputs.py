"""Captures its kernel on the first inputs in a CUDA graph and replays it for all others.

layer: replay
catalogue: 2.15, 2.17
task: a_chain
expect: wrong, runtime_error
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
    graph = None

    def forward(self, x, y):
        if self.graph is None:
            self.given = x.clone(), y.clone()
            chain(*self.given)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.output = chain(*self.given)
        self.graph.replay()
        chain_kernel[(1,)](x, y, self.output, 1, BLOCK=16)
        return self.output
