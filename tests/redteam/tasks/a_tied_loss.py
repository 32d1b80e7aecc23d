import torch
import torch.nn as nn

rows, cols = 4096, 4096
SMALL = {"rows": 60, "cols": 400}


class Model(nn.Module):
    """Squared error of each row between a shrunken input and a target (an autoencoder's: the input itself)."""

    def forward(self, x, target):
        return (torch.nn.functional.softshrink(x, 0.2) - target).square().mean(1)


def get_inputs():
    x = torch.randn(rows, cols)
    return [x, x.clone()]


def get_init_inputs():
    return []
