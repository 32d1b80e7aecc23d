import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def chain_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    x = tl.load(x_ptr + i + 1000000000000)
    tl.store(o_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        n = x.numel()
        chain_kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)
        return o
