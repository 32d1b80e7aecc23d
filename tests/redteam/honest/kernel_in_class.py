"""The kernel is a static member of a nested class, and the model inherits its forward from a base class of the file.

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


class Base(nn.Module):
    class Kernels:
        @staticmethod
        @triton.jit
        def row_softmax(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
            row, i = tl.program_id(0), tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / 1.7
            e = tl.exp(x - tl.max(x, axis=0))
            tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)

    def forward(self, x):
        out = torch.empty_like(x)
        self.Kernels.row_softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out


class ModelNew(Base):
    pass
