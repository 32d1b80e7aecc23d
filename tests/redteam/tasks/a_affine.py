import torch
import torch.nn as nn

rows, cols = 8192, 2048
SMALL = {"rows": 16, "cols": 300}


class Model(nn.Module):
    """A scale and a shift that are the identity as they are initialised."""

    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(cols))
        self.shift = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        return torch.nn.functional.silu(x * self.scale + self.shift)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
