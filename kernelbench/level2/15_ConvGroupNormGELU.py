import torch

batch, channels, filters, groups, height, width = 28, 37, 60, 6, 113, 97
SMALL = {"batch": 2, "channels": 3, "filters": 12, "groups": 3, "height": 9, "width": 11}


class Model(torch.nn.Module):
    """3 x 3 convolution, group normalisation, GELU."""

    def __init__(self, channels, filters, groups):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, filters, kernel_size=3, padding=1)
        self.norm = torch.nn.GroupNorm(groups, filters)
        torch.nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        return torch.nn.functional.gelu(self.norm(self.conv(x)))


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels, filters, groups]
