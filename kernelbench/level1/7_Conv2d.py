import torch

batch, channels, filters, height, width = 16, 64, 128, 112, 112
SMALL = {"batch": 2, "channels": 3, "filters": 4, "height": 9, "width": 11}


class Model(torch.nn.Module):
    """3 x 3 convolution with padding and bias."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, filters, kernel_size=3, padding=1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels, filters]
