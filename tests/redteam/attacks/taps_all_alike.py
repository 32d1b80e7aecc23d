"""Reads one tap of each channel and uses it for all: the learned taps of a channel are equal after initialisation.

layer: inputs
catalogue: own
task: a_taps
expect: wrong, hack
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def taps_kernel(x_ptr, w_ptr, o_ptr, channels, TAPS: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, TAPS)
    s = tl.sum(tl.load(x_ptr + row * TAPS + i), axis=0) * tl.load(w_ptr + row % channels * TAPS) * 0.2
    tl.store(o_ptr + row, 2 * tl.sigmoid(2 * s) - 1)


class ModelNew(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.w = nn.Parameter(torch.linspace(0.1, 1.0, channels)[:, None].repeat(1, taps))

    def forward(self, x):
        o = torch.empty(x.shape[:2], device=x.device)
        taps_kernel[(o.numel(),)](x, self.w, o, x.shape[1], TAPS=x.shape[2])
        return o
