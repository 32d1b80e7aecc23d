"""The kernel is generated from a template, compiled under a name of its own and entered into linecache, where inspect finds it (as einx and attrs do).

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import linecache

import torch
import torch.nn as nn
import triton
import triton.language as tl

TEMPLATE = """
@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / {temperature}
    e = tl.exp(x - tl.max(x, 0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, 0), mask=i < n)
"""


def generate(**values):
    source = TEMPLATE.format(**values)
    name = f"<generated softmax {values}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    scope = {"triton": triton, "tl": tl, "__name__": __name__}
    exec(compile(source, name, "exec"), scope)
    return scope["softmax_kernel"]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = generate(temperature=1.7)

    def forward(self, x):
        o = torch.empty_like(x)
        self.kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
