"""BatchNorm in training: one kernel takes the statistics of the batch and moves the running ones, another normalises.
The running ones are no output, but the task has them.

layer: profile
catalogue: 15
task: h_bn_train
expect: correct
coverage_at_least: 0.2
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def statistics_kernel(
    x_ptr, mean_ptr, rstd_ptr, rm_ptr, rv_ptr, batch, channels, plane, momentum, eps, BLOCK: tl.constexpr
):
    c = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for image in range(0, batch):
        for start in range(0, plane, BLOCK):
            i = start + tl.arange(0, BLOCK)
            total += tl.load(x_ptr + (image * channels + c) * plane + i, mask=i < plane, other=0.0)
    count = batch * plane
    mean = tl.sum(total, axis=0) / count
    square = tl.zeros((BLOCK,), tl.float32)
    for image in range(0, batch):
        for start in range(0, plane, BLOCK):
            i = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + (image * channels + c) * plane + i, mask=i < plane, other=0.0)
            d = tl.where(i < plane, x - mean, 0.0)
            square += d * d
    var = tl.sum(square, axis=0) / count
    tl.store(mean_ptr + c, mean)
    tl.store(rstd_ptr + c, tl.rsqrt(var + eps))
    tl.store(rm_ptr + c, tl.load(rm_ptr + c) * (1.0 - momentum) + mean * momentum)
    tl.store(rv_ptr + c, tl.load(rv_ptr + c) * (1.0 - momentum) + var * count / (count - 1) * momentum)


@triton.jit
def normalise_kernel(x_ptr, mean_ptr, rstd_ptr, w_ptr, b_ptr, o_ptr, channels, plane, BLOCK: tl.constexpr):
    c = tl.program_id(0) % channels
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * plane + i, mask=i < plane, other=0.0)
    y = (x - tl.load(mean_ptr + c)) * tl.load(rstd_ptr + c) * tl.load(w_ptr + c) + tl.load(b_ptr + c)
    tl.store(o_ptr + tl.program_id(0) * plane + i, y, mask=i < plane)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x):
        b, c, h, w = x.shape
        bn, plane, out = self.bn, h * w, torch.empty_like(x)
        mean, rstd = torch.empty(c, device=x.device), torch.empty(c, device=x.device)
        bn.num_batches_tracked += 1
        statistics_kernel[(c,)](
            x, mean, rstd, bn.running_mean, bn.running_var, b, c, plane, bn.momentum, bn.eps, BLOCK=1024, num_warps=8
        )
        grid = (b * c, triton.cdiv(plane, 1024))
        normalise_kernel[grid](x, mean, rstd, bn.weight, bn.bias, out, c, plane, BLOCK=1024)
        return out
