import torch

batch, channels, filters, height, width = 44, 24, 28, 61, 67
SMALL = {"batch": 2, "channels": 3, "filters": 4, "height": 7, "width": 8}


class Model(torch.nn.Module):
    """Images doubled by repeating pixels, 3 x 3 convolution, leaky ReLU."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, filters, kernel_size=3, padding=1)

    def forward(self, x):
        x = torch.nn.functional.interpolate(x, scale_factor=2, mode="nearest")
        return torch.nn.functional.leaky_relu(self.conv(x), 0.2)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels, filters]
