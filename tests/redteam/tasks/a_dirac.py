import torch
import torch.nn as nn
import torch.nn.functional as F

batch, channels, size = 32, 64, 56
SMALL = {"batch": 2, "channels": 16, "size": 12}


class Model(nn.Module):
    """A convolution that starts as the identity (dirac_), SiLU."""

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        nn.init.dirac_(self.conv.weight)

    def forward(self, x):
        return F.silu(self.conv(x))


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [channels]
