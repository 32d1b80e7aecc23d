"""Guards: a tensor on the CPU goes the library's way.

layer: source
catalogue: own
task: h_guards_and_run
expect: correct
coverage_at_least: 0.9
"""

import importlib.util
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
from torch.utils._triton import has_triton

HAS_TRITON = importlib.util.find_spec("triton") is not None and has_triton()
os.environ.setdefault("TRITON_PRINT_AUTOTUNING", "0")


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (512, 1024) for w in (2, 4)],
    key=["n"],
    use_cuda_graph=True,
    cache_results=True,
)
@triton.jit
def mish_clip(x_ptr, y_ptr, n, lo: tl.constexpr, hi: tl.constexpr, BLOCK: tl.constexpr):
    tl.device_assert(n > 0, "empty")
    tl.assume(n > 0)
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    e = tl.exp(-tl.abs(x))
    sp = tl.maximum(x, 0) + tl.log(1 + e)
    t = tl.exp(-2 * sp)
    y = x * ((1 - t) / (1 + t))
    tl.store(y_ptr + o, tl.clamp(y, lo, hi), mask=o < n)


class ModelNew(nn.Module):
    def forward(self, x):
        if not (HAS_TRITON and x.is_cuda and not x.is_cpu):
            return F.hardtanh(F.mish(x), -0.2, 1.5)
        assert torch.cuda.is_bf16_supported() and torch.cuda.get_device_capability(x.device)[0] >= 7
        x = x.contiguous()
        y = torch.empty_like(x)
        grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)  # noqa: E731
        mish_clip.run(x, y, x.numel(), -0.2, 1.5, grid=grid, warmup=False)
        return y
