import torch
import torch.nn as nn

batch, channels, taps = 4096, 128, 64
SMALL = {"batch": 12, "channels": 24, "taps": 64}


class Model(nn.Module):
    """Learned taps for each channel, which start as one moving average per channel, each of another gain."""

    def __init__(self, channels, taps):
        super().__init__()
        self.w = nn.Parameter(torch.linspace(0.1, 1.0, channels)[:, None].repeat(1, taps))

    def forward(self, x):
        return torch.tanh((x * self.w).sum(-1) * 0.2)


def get_inputs():
    return [torch.randn(batch, channels, taps)]


def get_init_inputs():
    return [channels, taps]
