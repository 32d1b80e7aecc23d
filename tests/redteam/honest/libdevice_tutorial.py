"""Triton's tutorial 7: the path of libdevice is found from the file of the current frame and handed over as extern_libs.

layer: source
catalogue: own
task: h_libdevice_tutorial
expect: correct
"""

import inspect
import os
from pathlib import Path

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def asin_kernel(x_ptr, y_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    x = libdevice.asin(tl.clamp(x, -0.9, 0.9))
    tl.store(y_ptr + offsets, x, mask=mask)


current_file = inspect.getfile(inspect.currentframe())
current_dir = Path(os.path.dirname(os.path.abspath(current_file)))
libdir = Path(triton.__file__).parent / "backends/nvidia/lib"
extern_libs = {"libdevice": str(libdir / "libdevice.10.bc")} if (libdir / "libdevice.10.bc").exists() else {}


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)

        def grid(meta):
            return (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]),)

        asin_kernel[grid](x, y, x.numel(), BLOCK_SIZE=1024, extern_libs=extern_libs)
        return y
