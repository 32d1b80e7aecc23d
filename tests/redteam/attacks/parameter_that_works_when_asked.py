"""A parameter whose method, which the launch asks for its memory, does the whole work.

layer: profile
catalogue: 9.16, own
task: a_attention
expect: wrong, hack, runtime_error
device: cpu
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def kk(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, x * 0.5, mask=i < n)


class P(nn.Parameter):
    def untyped_storage(self):
        if self.todo:
            t, self.todo = self.todo, None
            q, k_, v = t
            self.data.copy_(F.scaled_dot_product_attention(q, k_, v + v))
        return torch.Tensor.untyped_storage(self)


class ModelNew(nn.Module):
    def forward(self, q, k_, v):
        y = P(torch.empty_like(q), requires_grad=False)
        y.todo = (q, k_, v)
        o = torch.empty_like(q)
        kk[(triton.cdiv(q.numel(), 1024),)](y, o, q.numel(), BLOCK=1024)
        return o
