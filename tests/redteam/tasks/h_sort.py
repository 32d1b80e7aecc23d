import torch
import torch.nn as nn

rows, cols = 8192, 512
SMALL = {"rows": 6, "cols": 64}


class Model(nn.Module):
    """Each row in ascending order."""

    def forward(self, x):
        return torch.sort(x, dim=1).values


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
