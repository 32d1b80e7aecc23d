import torch
import torch.nn as nn

rows, width = 8192, 1024
SMALL = {"rows": 16, "width": 200}


class Model(nn.Module):
    """Layer normalisation as it is after initialisation: weight all ones, bias all zeros."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]
