"""The output is a view into a padded buffer of the candidate's own: neither contiguous nor at its beginning.

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, stride, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * stride + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        buffer = x.new_zeros(rows + 1, cols + 24)
        o = buffer[1:, 8 : cols + 8]
        softmax_kernel[(rows,)](x, o, cols, buffer.stride(0), BLOCK=triton.next_power_of_2(cols))
        return o
