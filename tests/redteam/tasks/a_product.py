import torch
import torch.nn as nn

n = 4096
SMALL = {"n": 384}


class Model(nn.Module):
    """A linear layer and GELU, written out."""

    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n, n) * n**-0.5)
        self.b = nn.Parameter(torch.randn(n))

    def forward(self, x):
        return torch.sigmoid((x @ self.w) + self.b)


def get_inputs():
    return [torch.randn(n, n)]


def get_init_inputs():
    return [n]
