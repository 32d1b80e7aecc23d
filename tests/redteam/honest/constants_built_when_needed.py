"""A table of constants is built at the first call, kept in a buffer that is not saved, and read by every launch.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, t_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) * tl.load(t_ptr)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", None, persistent=False)
        self._cache: dict[torch.device, torch.Tensor] = {}

    def forward(self, x):
        if x.device not in self._cache:
            self._cache[x.device] = torch.full((1,), 1 / 1.7, dtype=torch.float32, device=x.device)
        o = torch.empty_like(x, memory_format=torch.contiguous_format)
        softmax_kernel[(x.shape[0],)](x, self._cache[x.device], o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
