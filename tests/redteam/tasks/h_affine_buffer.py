import torch
import torch.nn as nn

rows, cols = 4096, 4000
SMALL = {"rows": 12, "cols": 300}


class Model(nn.Module):
    """Division by a buffer of scales (all ones at first), then tanh."""

    def __init__(self, cols):
        super().__init__()
        self.register_buffer("scale", torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        return torch.tanh(x / self.scale + self.bias)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
