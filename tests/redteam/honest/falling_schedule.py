"""Noise levels of a sampler fall from first to last: the kernel counts those above, where the reference searches the flipped ones.

layer: inputs
catalogue: own
task: h_falling_schedule
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def locate(g_ptr, s_ptr, i_ptr, h_ptr, N, n, BN: tl.constexpr, B: tl.constexpr):
    j = tl.program_id(0) * B + tl.arange(0, B)
    k = tl.arange(0, BN)
    s = tl.load(s_ptr + j, mask=j < n, other=0.0)
    g = tl.load(g_ptr + k, mask=k < N, other=float("-inf"))
    above = (g[None, :] >= s[:, None]) & (k < N)[None, :]
    tl.store(i_ptr + j, tl.sum(above.to(tl.int64), 1), mask=j < n)
    tl.store(h_ptr + j, s * 0.5, mask=j < n)


class ModelNew(nn.Module):
    def forward(self, sigmas, s):
        i, h = torch.empty(s.shape, dtype=torch.int64, device=s.device), torch.empty_like(s)
        locate[(triton.cdiv(len(s), 32),)](
            sigmas, s, i, h, len(sigmas), len(s), BN=triton.next_power_of_2(len(sigmas)), B=32
        )
        return i, h
