"""Keeps the block size of each shape in a JSON file in the temporary folder, as tuned libraries do, and lives without
the file.

layer: filesystem
catalogue: 2.11
task: h_softmax
expect: correct
coverage_at_least: 0.9
"""

import functools
import json
import os
import tempfile

import torch
import torch.nn as nn
import triton
import triton.language as tl

PATH = os.path.join(tempfile.gettempdir(), "softmax_warps.json")


@functools.cache
def warps_for(n: int) -> int:
    """From the file of earlier runs, else by rule."""
    try:
        with open(PATH) as file:
            known = json.load(file)
    except (OSError, ValueError):
        known = {}
    if str(n) not in known:
        known[str(n)] = 4 if n <= 1024 else 8
        try:
            with open(PATH, "w") as file:
                json.dump(known, file)
        except OSError:
            pass
    return known[str(n)]


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, n = x.shape
        softmax_kernel[(rows,)](x, out, n, BLOCK=triton.next_power_of_2(n), num_warps=warps_for(n))
        return out
