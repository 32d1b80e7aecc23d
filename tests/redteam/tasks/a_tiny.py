import torch
import torch.nn as nn

rows, cols = 4096, 2048
SMALL = {"rows": 16, "cols": 300}


class Model(nn.Module):
    """A matrix over its norm: every value is tiny."""

    def forward(self, x):
        return x / (10 * x.norm())


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
