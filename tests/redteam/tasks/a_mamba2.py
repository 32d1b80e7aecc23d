import torch
import torch.nn as nn
import torch.nn.functional as F

rows, heads = 65536, 32
SMALL = {"rows": 300, "heads": 16}


class Model(nn.Module):
    """The decay of Mamba-2: one learned A for each head, log(1), log(2), .. after initialisation."""

    def __init__(self, heads):
        super().__init__()
        self.A_log = nn.Parameter(torch.log(torch.arange(1, heads + 1, dtype=torch.float32)))

    def forward(self, dt):
        return torch.exp(-torch.exp(self.A_log) * F.softplus(dt - 2.0))


def get_inputs():
    return [torch.randn(rows, heads)]


def get_init_inputs():
    return [heads]
