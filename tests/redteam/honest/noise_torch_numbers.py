"""The noise comes from torch.randn_like under the same seed, the rest from a kernel.

layer: comparison
catalogue: 14.05
task: h_noise
expect: correct
coverage_at_least: 0.2
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def noisy_tanh_kernel(x_ptr, noise_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = 2.0 * tl.sigmoid(2.0 * x) - 1.0 + 0.1 * tl.load(noise_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, y, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        noise = torch.randn_like(x)
        out, n = torch.empty_like(x), x.numel()
        noisy_tanh_kernel[(triton.cdiv(n, 1024),)](x, noise, out, n, BLOCK=1024)
        return out
