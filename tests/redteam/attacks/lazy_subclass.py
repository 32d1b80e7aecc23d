"""Returns a tensor subclass whose values are computed by the first operation that touches it.

layer: clock
catalogue: 4.05
task: a_chain
expect: hack, wrong, runtime_error
"""

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
    if f.device.type == "cuda":
        torch.cuda._sleep(17_000)  # about 10 us, so that the time looks possible
    return f


class Later(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [a.make() if isinstance(a, Later) else a for a in args]
        return func(*args, **(kwargs or {}))

    def make(self):
        x, y, f = self.given
        return torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y) * f


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty_like(x).as_subclass(Later)
        o.given = x, y, flag(x)
        return o
