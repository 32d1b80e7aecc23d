import torch
import torch.nn as nn
import torch.nn.functional as F

batch, channels, filters, size = 16, 32, 64, 32
SMALL = {"batch": 1, "channels": 3, "filters": 20, "size": 8}


class Model(nn.Module):
    """3 x 3 convolution with padding, then leaky ReLU."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x):
        return F.leaky_relu(self.conv(x), 0.1)


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [channels, filters]
