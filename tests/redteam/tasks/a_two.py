import torch
import torch.nn as nn

rows, cols = 4096, 2048
SMALL = {"rows": 16, "cols": 300}


class Model(nn.Module):
    """Two outputs: the centred rows, and the spread of each."""

    def forward(self, x):
        centred = x - x.mean(dim=1, keepdim=True)
        return centred, centred.abs().mean(dim=1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
