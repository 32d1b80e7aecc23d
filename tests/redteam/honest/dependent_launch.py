"""Programmatic dependent launch as in Triton's tutorial 11, where the GPU has it.

layer: source
catalogue: own
task: h_dependent_launch
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def supports_pdl():
    return torch.cuda.get_device_capability()[0] >= 9


@triton.jit
def add_mul(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr, USE_GDC: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if USE_GDC:
        tl.extra.cuda.gdc_wait()
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    if USE_GDC:
        tl.extra.cuda.gdc_launch_dependents()
    tl.store(o_ptr + i, (x + y) * x, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x)
        pdl = supports_pdl()
        add_mul[(triton.cdiv(x.numel(), 1024),)](
            x, y, o, x.numel(), BLOCK=1024, USE_GDC=pdl, **({"launch_pdl": True} if pdl else {})
        )
        return o
