"""Integers in, counts out: atomics into a zeroed int64 buffer.

layer: comparison
catalogue: own
task: h_histogram
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count_kernel(label_ptr, out_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.arange(0, BINS)
    label = tl.load(label_ptr + i, mask=i < n, other=-1)
    hits = (label[:, None] == bins[None, :]).to(tl.int32)
    tl.atomic_add(out_ptr + bins, tl.sum(hits, axis=0).to(tl.int64))


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, labels):
        padded = triton.next_power_of_2(self.bins)
        out = torch.zeros(padded, dtype=torch.int64, device=labels.device)
        count_kernel[(triton.cdiv(labels.numel(), 128),)](labels, out, labels.numel(), BINS=padded, BLOCK=128)
        return out[: self.bins]
