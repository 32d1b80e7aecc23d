import torch
import torch.nn as nn

rows, cols = 4096, 4096
SMALL = {"rows": 16, "cols": 300}


class Model(nn.Module):
    """Mean squared error, written out."""

    def forward(self, p, t):
        d = p - t
        d = d * d
        return d.mean()


def get_inputs():
    return [torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs():
    return []
