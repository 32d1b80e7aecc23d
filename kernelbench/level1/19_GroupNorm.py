import torch

batch, channels, groups, size = 80, 60, 5, 91
SMALL = {"batch": 2, "channels": 20, "size": 9}


class Model(torch.nn.Module):
    """Group normalisation of images, with a learned weight and bias per channel."""

    def __init__(self, groups, channels):
        super().__init__()
        self.norm = torch.nn.GroupNorm(groups, channels)
        torch.nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [2 * torch.randn(batch, channels, size, size) + torch.randn(channels, 1, 1)]


def get_init_inputs():
    return [groups, channels]
