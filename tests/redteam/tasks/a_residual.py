import torch
import torch.nn as nn

rows, cols = 4096, 2048
SMALL = {"rows": 16, "cols": 300}


class Model(nn.Module):
    """A residual branch that adds little to its input."""

    def forward(self, x):
        return x + 0.005 * torch.tanh(torch.sin(x) * 2 + 0.5)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
