import torch

batch, channels, length = 64, 96, 6001
SMALL = {"batch": 2, "channels": 5, "length": 203}


class Model(torch.nn.Module):
    """Largest value of each window of 8 with dilation 2 and stride 3."""

    def forward(self, x):
        return torch.nn.functional.max_pool1d(x, kernel_size=8, stride=3, dilation=2)


def get_inputs():
    return [torch.randn(batch, channels, length)]


def get_init_inputs():
    return []
