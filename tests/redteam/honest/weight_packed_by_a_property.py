"""Packs its weight at the first call into another layout, behind a property that notices when the weight is another one.

layer: replay
catalogue: 12.06
task: h_linear_relu
expect: correct
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, o_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    j = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        at = start + tl.arange(0, K)
        x = tl.load(x_ptr + i * k + at[None, :], mask=(i < m) & (at[None, :] < k), other=0.0)
        w = tl.load(w_ptr + at[:, None] * n + j, mask=(at[:, None] < k) & (j < n), other=0.0)
        total += tl.dot(x, w, input_precision="ieee")
    total += tl.load(b_ptr + j, mask=j < n, other=0.0)
    tl.store(o_ptr + i * n + j, tl.maximum(total, 0.0), mask=(i < m) & (j < n))


class ModelNew(nn.Module):
    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)
        self._packed = None

    @property
    def packed(self):
        if self._packed is None or self._packed[0] is not self.linear.weight:
            self._packed = (self.linear.weight, self.linear.weight.detach().t().contiguous())
        return self._packed[1]

    def forward(self, x):
        w, o = self.packed, x.new_empty(x.shape[0], self.linear.out_features)
        (m, k), n = x.shape, w.shape[1]
        grid = (triton.cdiv(m, 16), triton.cdiv(n, 32))
        linear_kernel[grid](x, w, self.linear.bias, o, m, n, k, M=16, N=32, K=32)
        return o
