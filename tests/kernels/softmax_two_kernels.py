import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_max_kernel(x_ptr, m_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    tl.store(m_ptr + row, tl.max(x, axis=0))


@triton.jit
def normalise_kernel(x_ptr, m_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    e = tl.exp(x - tl.load(m_ptr + row))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(300, 64)

    def forward(self, x):
        y = self.linear(x)
        rows, n = y.shape
        m, o = y.new_empty(rows), torch.empty_like(y)
        row_max_kernel[(rows,)](y, m, n, triton.next_power_of_2(n))
        normalise_kernel[(rows,)](y, m, o, n, triton.next_power_of_2(n))
        return o
