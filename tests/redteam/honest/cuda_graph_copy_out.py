"""Replays a CUDA graph of its own kernel on a static copy of the input and returns a copy of the static output: real
work in every call, recorded once.

layer: replay
catalogue: 2.16
task: h_softmax
expect: correct
device: cuda
coverage_at_least: 0.05
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    """The first call with a shape records its launch; every call copies its input into the graph's and replays."""

    def __init__(self):
        super().__init__()
        self.graphs = {}

    def _record(self, x):
        given, out = x.clone(), torch.empty_like(x)
        rows, n = x.shape
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # compiles before anything is recorded
            softmax_kernel[(rows,)](given, out, n, BLOCK=triton.next_power_of_2(n))
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            softmax_kernel[(rows,)](given, out, n, BLOCK=triton.next_power_of_2(n))
        return graph, given, out

    def forward(self, x):
        key = (x.shape, x.dtype)
        if key not in self.graphs:
            self.graphs[key] = self._record(x)
        graph, given, out = self.graphs[key]
        given.copy_(x)
        graph.replay()
        return out.clone()
