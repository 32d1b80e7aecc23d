"""Autotune with a hook that prunes configurations, under heuristics.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def prune(configs, named, **kwargs):
    block = triton.next_power_of_2(named["n"])
    return [c for c in configs if c.kwargs["ROWS"] * block <= 2**14 and c.kwargs["ROWS"] <= named["rows"]] or configs[
        :1
    ]


@triton.autotune(
    configs=[triton.Config({"ROWS": r}, num_warps=w) for r in (1, 2, 64) for w in (2, 4)],
    key=["rows", "n"],
    prune_configs_by={"early_config_prune": prune},
    warmup=1,
    rep=1,
)
@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def softmax_kernel(x_ptr, o_ptr, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[None, :]
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    mask = (row < rows) & (i < n)
    x = tl.load(x_ptr + row * n + i, mask=mask, other=float("-inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=1, keep_dims=True), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        softmax_kernel[lambda meta: (triton.cdiv(x.shape[0], meta["ROWS"]),)](x, o, *x.shape)
        return o
