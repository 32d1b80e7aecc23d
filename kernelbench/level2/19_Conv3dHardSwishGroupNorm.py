import torch

batch, channels, filters, groups, depth, height, width = 13, 8, 18, 3, 22, 63, 61
SMALL = {"batch": 2, "channels": 3, "filters": 6, "depth": 5, "height": 7, "width": 6}


class Model(torch.nn.Module):
    """3d convolution, hard swish, group normalisation."""

    def __init__(self, channels, filters, groups):
        super().__init__()
        self.conv = torch.nn.Conv3d(channels, filters, kernel_size=3)
        self.norm = torch.nn.GroupNorm(groups, filters)
        torch.nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        return self.norm(torch.nn.functional.hardswish(self.conv(x)))


def get_inputs():
    return [2 * torch.randn(batch, channels, depth, height, width)]


def get_init_inputs():
    return [channels, filters, groups]
