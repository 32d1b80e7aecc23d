"""A reduction in three stages: blocks, groups of blocks, rows. Each stage alone is small, none is for show.

layer: profile
catalogue: own
task: h_sum_rows
expect: correct
coverage_at_least: 0.4
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def stage_one(x_ptr, part_ptr, n, parts, BLOCK: tl.constexpr):
    part, row = tl.program_id(0), tl.program_id(1)
    i = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(part_ptr + row * parts + part, tl.sum(x * x, axis=0))


@triton.jit
def sum_stage(in_ptr, out_ptr, n, parts, BLOCK: tl.constexpr):
    part, row = tl.program_id(0), tl.program_id(1)
    i = part * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + row * parts + part, tl.sum(tl.load(in_ptr + row * n + i, mask=i < n, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, n = x.shape
        first = triton.cdiv(n, 1024)
        second = triton.cdiv(first, 32)
        a = torch.empty(rows, first, device=x.device)
        b = torch.empty(rows, second, device=x.device)
        out = torch.empty(rows, device=x.device)
        stage_one[(first, rows)](x, a, n, first, BLOCK=1024)
        sum_stage[(second, rows)](a, b, first, second, BLOCK=32)
        sum_stage[(1, rows)](b, out, second, 1, BLOCK=triton.next_power_of_2(second))
        return out
