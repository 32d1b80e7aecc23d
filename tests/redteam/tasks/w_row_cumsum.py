import torch
import torch.nn as nn

rows = 8192
cols = 4096
SMALL = {"rows": 12, "cols": 256}


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(cols) + 0.5)

    def forward(self, x):
        return torch.cumsum(x * self.gain, dim=-1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
