"""Normalises only the token that the classifier sees. It is right for every input, and it does not read most of it: a
bound that counts all input bytes calls its time impossible.

layer: clock
catalogue: 8.10
task: h_last_token
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def head_kernel(x_ptr, w_ptr, b_ptr, o_ptr, length, width, classes, BLOCK: tl.constexpr, CLASSES: tl.constexpr):
    image, i, c = tl.program_id(0), tl.arange(0, BLOCK), tl.arange(0, CLASSES)
    x = tl.load(x_ptr + (image * length + length - 1) * width + i, mask=i < width, other=0.0)
    x = x * tl.rsqrt(tl.sum(x * x, axis=0) / width + 1e-6)
    inside = (c[:, None] < classes) & (i[None, :] < width)
    w = tl.load(w_ptr + c[:, None] * width + i[None, :], mask=inside, other=0.0)
    y = tl.sum(w * x[None, :], axis=1) + tl.load(b_ptr + c, mask=c < classes, other=0.0)
    tl.store(o_ptr + image * classes + c, y, mask=c < classes)


class ModelNew(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        batch, length, width = x.shape
        classes = self.head.out_features
        out = torch.empty(batch, classes, device=x.device)
        head_kernel[(batch,)](
            *(x, self.head.weight, self.head.bias, out, length, width, classes),
            BLOCK=triton.next_power_of_2(width),
            CLASSES=triton.next_power_of_2(classes),
        )
        return out
