import torch

batch, channels, filters, depth, height, width = 8, 16, 24, 25, 55, 61
SMALL = {"batch": 1, "channels": 3, "filters": 4, "depth": 6, "height": 7, "width": 9}


class Model(torch.nn.Module):
    """3 x 3 x 3 convolution without padding."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = torch.nn.Conv3d(channels, filters, kernel_size=3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, channels, depth, height, width)]


def get_init_inputs():
    return [channels, filters]
