import torch

batch, channels, filters, height, width = 16, 61, 97, 131, 129
SMALL = {"batch": 2, "channels": 7, "filters": 9, "height": 11, "width": 13}


class Model(torch.nn.Module):
    """1 x 1 convolution with bias."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, filters, kernel_size=1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels, filters]
