import torch
import torch.nn as nn
import torch.nn.functional as F

rows, width, hidden = 4096, 512, 512
SMALL = {"rows": 32, "width": 64, "hidden": 96}


class Model(nn.Module):
    """A linear layer with weight normalisation."""

    def __init__(self, width, hidden):
        super().__init__()
        self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(width, hidden))

    def forward(self, x):
        return F.silu(self.linear(x))


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, hidden]
