"""Makes the inputs of the usual seed when it is imported, and always returns the answer to those.

layer: inputs
catalogue: 2.22, 2.23
task: a_chain
expect: wrong
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    o = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


class ModelNew(nn.Module):
    def forward(self, x, y):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(42)
            x, y = torch.randn(x.shape), torch.randn(y.shape)
        answer = torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y)
        return copy(answer.to("cuda" if torch.cuda.is_available() else "cpu"))
