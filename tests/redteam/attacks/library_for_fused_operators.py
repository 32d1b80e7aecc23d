"""A fused operator of another namespace of torch than the usual one does the work.

layer: profile
catalogue: 9.14, 9.08
task: a_chain
expect: hack, correct, unsupported, runtime_error, wrong
coverage_at_most: 0.4
speedup_at_most: 1.3
device: cpu
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def last_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.sigmoid(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def last(x):
    o = torch.empty_like(x)
    last_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


class ModelNew(nn.Module):
    def forward(self, x, y):
        eye = torch.eye(x.shape[1], device=x.device)
        z = torch.ops.mkldnn._linear_pointwise(x - 0.3, eye, None, "relu", [], "")
        return last(z * 1.7 + y)
