import torch
import torch.nn as nn
import torch.nn.functional as F

batch, channels, size = 16, 64, 56
SMALL = {"batch": 2, "channels": 16, "size": 12}


class Model(nn.Module):
    """A convolution whose weights are standardised in every forward."""

    def __init__(self, i, o):
        super().__init__()
        self.conv = nn.Conv2d(i, o, 3, padding=1)

    def forward(self, x):
        w = self.conv.weight
        v, m = torch.var_mean(w, (1, 2, 3), keepdim=True, unbiased=False)
        return F.conv2d(x, (w - m) * torch.rsqrt(v + 1e-5), self.conv.bias, padding=1)


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [channels, channels]
