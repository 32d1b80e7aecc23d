import torch
import torch.nn as nn

rows, width = 4096, 1024
SMALL = {"rows": 128, "width": 384}


class Model(nn.Module):
    """A linear layer that starts as the identity, SiLU."""

    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        nn.init.eye_(self.mix.weight)

    def forward(self, x):
        return torch.nn.functional.silu(self.mix(x))


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]
