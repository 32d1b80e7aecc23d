"""Works in place on a copy of its input, autotuned with restore_value: every trial but the last is undone.

layer: clock
catalogue: 14.22
task: h_dropout_eval
expect: correct
coverage_at_least: 0.3
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 512}), triton.Config({"BLOCK": 2048}, num_warps=8)],
    key=["n"],
    restore_value=["y_ptr"],
)
@triton.jit
def bias_relu_in_place(y_ptr, bias_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < n) + tl.load(bias_ptr + i % cols, mask=i < n)
    tl.store(y_ptr + i, tl.maximum(y, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))

    def forward(self, x):
        y = x.clone()
        n = y.numel()
        bias_relu_in_place[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](y, self.bias, n, y.shape[1])
        return y
