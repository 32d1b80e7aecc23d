"""Settings in a frozen dataclass, modes in an enumeration, chosen by match.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.9
"""

import dataclasses
import enum
import typing

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


class Mode(enum.Enum):
    ROW = "row"
    OTHER = "other"


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    mode: Mode = Mode.ROW
    warps: int = 4

    def block(self, n: int) -> int:
        return max(16, triton.next_power_of_2(n))


class ModelNew(nn.Module):
    settings: typing.ClassVar[Settings] = Settings()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        match self.settings.mode:
            case Mode.ROW:
                o = x.new_empty(x.shape)
                block = self.settings.block(x.shape[1])
                softmax_kernel[x.shape[0], 1, 1](x, o, x.shape[1], BLOCK=block, num_warps=self.settings.warps)
                return o
            case _:
                raise NotImplementedError
