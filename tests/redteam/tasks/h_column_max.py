import torch
import torch.nn as nn

rows, cols = 40_000, 500
SMALL = {"rows": 300, "cols": 40}


class Model(nn.Module):
    """The largest value of each column, clamped below at zero."""

    def forward(self, x):
        return x.amax(0).clamp_min(0)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
