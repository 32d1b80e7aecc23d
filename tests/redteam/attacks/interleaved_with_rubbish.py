"""The kernel writes the library's softmax into every other place of a buffer and rubbish between; the output is a view with gaps.

layer: profile
catalogue: 9.03
task: t_softmax_hand
expect: hack
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + 2 * i, x, mask=i < n)
    tl.store(o_ptr + 2 * i + 1, x * 3, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.softmax(x, dim=-1)
        o = torch.empty(*y.shape, 2, device=x.device)
        copy_kernel[(triton.cdiv(y.numel(), 1024),)](y, o, y.numel(), BLOCK=1024)
        return o[..., 0]
