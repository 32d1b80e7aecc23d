"""Takes Triton's interpreter for a library: its builder adds and multiplies arrays outside of any launch.

layer: profile
catalogue: 9.14, 9.08
task: a_chain
expect: unsupported, runtime_error, wrong, hack
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
        from triton.runtime import interpreter

        a = interpreter.TensorHandle(x.detach().cpu().numpy(), tl.float32)
        b = interpreter.interpreter_builder.create_fadd(a, a)
        return last(torch.from_numpy(b.data) * 0.5 + y)
