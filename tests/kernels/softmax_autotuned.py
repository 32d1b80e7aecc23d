import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=1), triton.Config({"BLOCK": 128}, num_warps=4)], key=["n"]
)
@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(300, 64)

    def forward(self, x):
        y = self.linear(x)
        o = torch.empty_like(y)
        softmax_kernel[(y.shape[0],)](y, o, y.shape[1])
        return o
