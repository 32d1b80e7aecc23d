import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

rows, width = 4096, 512
SMALL = {"rows": 32, "width": 64}


class Model(nn.Module):
    """Three layers that start as copies of one, as nn.TransformerEncoder makes them."""

    def __init__(self, width):
        super().__init__()
        layer = nn.Linear(width, width)
        self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = F.silu(layer(x)) * 2.0
        return x


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]
