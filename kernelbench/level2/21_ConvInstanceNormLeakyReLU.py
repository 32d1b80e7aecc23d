import torch

batch, channels, filters, height, width = 24, 29, 64, 120, 101
SMALL = {"batch": 2, "channels": 3, "filters": 5, "height": 10, "width": 11}


class Model(torch.nn.Module):
    """3 x 3 convolution, instance normalisation, leaky ReLU, division."""

    def __init__(self, channels, filters, divisor):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, filters, kernel_size=3, padding=1, bias=False)
        self.divisor = divisor

    def forward(self, x):
        return torch.nn.functional.leaky_relu(torch.nn.functional.instance_norm(self.conv(x)), 0.1) / self.divisor


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels, filters, 1.6]
