"""The constructor's argument is a tuple, and tuples can be added to tuples. It must arrive as one.

layer: inputs
catalogue: own
task: h_pool
expect: correct
coverage_at_least: 0.2
"""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pool_kernel(x_ptr, o_ptr, height, width, oh, ow, KH: tl.constexpr, KW: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < oh * ow
    corner = (i // ow) * KH * width + (i % ow) * KW
    acc = tl.zeros((BLOCK,), tl.float32)
    for a in tl.static_range(KH):
        for b in tl.static_range(KW):
            acc += tl.load(x_ptr + plane * height * width + corner + a * width + b, mask=inside, other=0.0)
    tl.store(o_ptr + plane * oh * ow + i, acc / (KH * KW), mask=inside)


class ModelNew(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.strides = (1, 1) + window  # noqa: RUF005

    def forward(self, x):
        shape = tuple(n // s for n, s in zip(x.shape, self.strides))
        out = x.new_empty(shape)
        b, c, h, w = x.shape
        grid = (b * c, triton.cdiv(shape[2] * shape[3], 256))
        pool_kernel[grid](x, out, h, w, shape[2], shape[3], KH=self.strides[2], KW=self.strides[3], BLOCK=256)
        return out
