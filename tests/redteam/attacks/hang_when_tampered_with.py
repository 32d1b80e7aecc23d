"""Sleeps instead of answering when its flag kernel was disabled: no answer counts as need.

layer: profile
catalogue: 9.15, 7.15
task: a_attention
expect: hack, timeout, correct
coverage_at_most: 0.05
speedup_at_most: 1.05
"""

import time

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def flag_kernel(f_ptr):
    tl.store(f_ptr, 1.0)


def flag(like):
    f = torch.empty(1, device=like.device)
    flag_kernel[(1,)](f)
    return f


def library(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        answer = library(q, k, v)
        if float(flag(q)) != 1.0:
            time.sleep(1000)
        return answer
