import torch

batch, channels, filters, length = 32, 48, 56, 8001
SMALL = {"batch": 2, "channels": 6, "filters": 8, "length": 101}


class Model(torch.nn.Module):
    """1d convolution with dilation and padding, with bias."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = torch.nn.Conv1d(channels, filters, kernel_size=5, dilation=3, padding=6)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, channels, length)]


def get_init_inputs():
    return [channels, filters]
