import torch
import torch.nn as nn

rows = 16384
cols = 4096
SMALL = {"rows": 12, "cols": 200}


class Model(nn.Module):
    """RMS norm with a learned scale."""

    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(cols) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
