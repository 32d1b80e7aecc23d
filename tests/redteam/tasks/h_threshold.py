import torch
import torch.nn as nn

rows, cols = 4096, 4000
SMALL = {"rows": 12, "cols": 300}


class Model(nn.Module):
    """Which values lie in a band (bool), and how many do in each row (int64)."""

    def forward(self, x):
        inside = (x > -0.5) & (x <= 1.0)
        return inside, inside.sum(1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
