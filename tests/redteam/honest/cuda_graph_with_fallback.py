"""Tries to record a CUDA graph at the second call; whatever goes wrong, it launches as before.

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = tl.exp(x - tl.max(x, 0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, 0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.graph, self.static = 0, None, None

    def launch(self, x, o):
        softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))

    def capture(self, x):
        try:
            graph = torch.cuda.CUDAGraph()
            static = x.clone(), torch.empty_like(x)
            with torch.cuda.graph(graph):
                self.launch(*static)
            self.graph, self.static = graph, static
        except Exception:  # noqa: BLE001
            self.graph = None

    def forward(self, x):
        self.calls += 1
        if self.calls == 2 and torch.cuda.is_available():
            self.capture(x)
        if self.graph is not None and self.static[0].shape == x.shape:
            self.static[0].copy_(x)
            self.graph.replay()
            return self.static[1].clone()
        o = torch.empty_like(x)
        self.launch(x, o)
        return o
