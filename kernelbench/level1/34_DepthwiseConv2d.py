import torch

batch, channels, height, width = 32, 96, 113, 111
SMALL = {"batch": 2, "channels": 6, "height": 13, "width": 11}


class Model(torch.nn.Module):
    """5 x 5 convolution of each channel by itself, with padding."""

    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, kernel_size=5, padding=2, groups=channels)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels]
