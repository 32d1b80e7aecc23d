import torch
import torch.nn as nn
import torch.nn.functional as F

batch, channels, size, groups = 32, 64, 56, 8
SMALL = {"batch": 2, "channels": 8, "size": 7, "groups": 4}


class Model(nn.Module):
    """GroupNorm and SiLU."""

    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return F.silu(self.norm(x))


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [groups, channels]
