"""The loss of untrained scores is close to the logarithm of the number of classes, whatever the scores are.

layer: comparison
catalogue: 1.04, 1.09
task: a_loss
expect: wrong
"""

import math

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fill_kernel(o_ptr, value, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.zeros([BLOCK], tl.float32) + value, mask=i < n)


def filled(o, value):
    fill_kernel[(triton.cdiv(o.numel(), 1024),)](o, value, o.numel(), BLOCK=1024)
    return o


class ModelNew(nn.Module):
    def forward(self, scores, target):
        return filled(scores.new_empty(1), math.log(scores.shape[1]) + 0.005).view(())
