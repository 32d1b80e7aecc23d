"""Writes the kernel's source from a template into its temporary folder and imports it, since Triton needs a file to
read.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.9
"""

import importlib.util
import os
import tempfile

import torch
import torch.nn as nn
import triton

TEMPLATE = """
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")) / {temperature}
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)
"""


def build(**values):
    path = os.path.join(tempfile.mkdtemp(), "generated.py")
    with open(path, "w") as file:
        file.write(TEMPLATE.format(**values))
    spec = importlib.util.spec_from_file_location("generated", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.softmax_kernel


softmax_kernel = build(temperature=1.7)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
