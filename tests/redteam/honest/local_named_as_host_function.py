"""A local variable of the kernel bears the name of a function of the file.

layer: source
catalogue: own
task: h_local_named_as_host_function
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _standardise(x_ptr, out_ptr, mean_ptr, n, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n
    centred = tl.where(mask, x - mean, 0.0)
    var = tl.sum(centred * centred, axis=0) / n
    standardised = centred / tl.sqrt(var + eps)
    tl.store(out_ptr + row * stride + cols, standardised, mask=mask)
    tl.store(mean_ptr + row, mean)


def standardised(x: torch.Tensor, eps: float = 1e-5):
    rows, n = x.shape
    out, mean = torch.empty_like(x), x.new_empty(rows)
    _standardise[(rows,)](x, out, mean, n, x.stride(0), eps, BLOCK=triton.next_power_of_2(n))
    return out, mean


class ModelNew(nn.Module):
    def forward(self, x):
        return standardised(x.contiguous())
