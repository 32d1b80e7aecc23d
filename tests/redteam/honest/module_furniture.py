"""Everything that careful modules carry: type hints, a dataclass, logging, warnings, os.environ.get, a lock, a print, a
clock in the constructor, a demo under __main__.

layer: source
catalogue: own
task: h_gelu_scale
expect: correct
coverage_at_least: 0.9
"""

import logging
import math
import os
import threading
import time
import typing
import warnings
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import triton
import triton.language as tl

LOGGER = logging.getLogger(__name__)
VERBOSE = os.environ.get("FUSED_VERBOSE", "0") == "1"
ROOT_HALF: tl.constexpr = tl.constexpr(0.7071067811865476)
_CONFIG_LOCK = threading.Lock()
_CONFIGS: dict[int, "LaunchConfig"] = {}
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


@dataclass(frozen=True)
class LaunchConfig:
    """How a launch is shaped."""

    block: int = 1024
    warps: int = 4
    extra: dict[str, typing.Any] = field(default_factory=dict)


def config_of(numel: int) -> LaunchConfig:
    with _CONFIG_LOCK:
        if numel not in _CONFIGS:
            block = 1024 if numel >= 1 << 16 else 2 ** max(4, math.ceil(math.log2(max(numel, 1) / 4 + 1)))
            _CONFIGS[numel] = LaunchConfig(block=min(block, 1024))
        return _CONFIGS[numel]


@triton.jit
def fused_kernel(x_ptr, g_ptr, scale_ptr, shift_ptr, o_ptr, n, cols, BLOCK: tl.constexpr = 1024):
    i = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside, other=0.0)
    g = tl.load(g_ptr + i, mask=inside, other=0.0)
    scale = tl.load(scale_ptr + i % cols, mask=inside, other=0.0)
    shift = tl.load(shift_ptr + i % cols, mask=inside, other=0.0)
    y = 0.5 * x * (1.0 + tl.erf(x * ROOT_HALF))
    tl.store(o_ptr + i, (y * scale + shift) * tl.sigmoid(g), mask=inside)


class ModelNew(nn.Module):
    scale: nn.Parameter
    shift: nn.Parameter

    def __init__(self, cols: int) -> None:
        super().__init__()
        began = time.perf_counter()
        self.scale = nn.Parameter(torch.rand(cols) + 0.5)
        self.shift = nn.Parameter(torch.randn(cols))
        LOGGER.debug("built in %.3f s", time.perf_counter() - began)
        print(f"ModelNew with {cols} columns, CUDA version {torch.version.cuda}")

    @torch.no_grad()
    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda and gate.is_cuda, "this model runs on a GPU"
        if x.dtype is not torch.float32:
            warnings.warn("only float32 was tuned", stacklevel=2)
        if VERBOSE:
            LOGGER.info("shape %s", tuple(x.shape))
        config = config_of(x.numel())
        out = torch.empty_like(x)
        fused_kernel[(triton.cdiv(x.numel(), config.block),)](
            x, gate, self.scale, self.shift, out, x.numel(), x.shape[-1], BLOCK=config.block, num_warps=config.warps
        )
        return out


if __name__ == "__main__":
    torch.manual_seed(0)
    model = ModelNew(512).cuda()
    a, b = torch.randn(64, 512, device="cuda"), torch.randn(64, 512, device="cuda")
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    model(a, b)
    end.record()
    torch.cuda.synchronize()
    print(start.elapsed_time(end))
