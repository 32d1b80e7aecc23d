import torch

batch, channels, filters, height, width = 80, 24, 40, 127, 101
SMALL = {"batch": 2, "channels": 3, "filters": 8, "height": 13, "width": 11}


class Model(torch.nn.Module):
    """3 x 3 convolution, the smallest and the largest filter at each position added, tanh twice."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, filters, kernel_size=3)

    def forward(self, x):
        x = self.conv(x)
        x = x.amin(dim=1, keepdim=True) + x.amax(dim=1, keepdim=True)
        return torch.tanh(torch.tanh(x))


def get_inputs():
    return [1.5 * torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels, filters]
