"""A CUDA graph holds a kernel and, after it, the library's operators, whose result is returned: no replay passes a launcher.

layer: replay
catalogue: 9.02, 2.16
task: a_chain
expect: hack
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


def library(x, y):
    return torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y)


class ModelNew(nn.Module):
    graph = None

    def forward(self, x, y):
        if self.graph is None:
            self.x, self.y, self.graph = x.clone(), y.clone(), torch.cuda.CUDAGraph()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                chain(self.x, self.y), library(self.x, self.y)
            torch.cuda.current_stream().wait_stream(side)
            with torch.cuda.graph(self.graph):
                self.shown, self.out = chain(self.x, self.y), library(self.x, self.y)
        self.x.copy_(x), self.y.copy_(y)
        self.graph.replay()
        return self.out.clone()
