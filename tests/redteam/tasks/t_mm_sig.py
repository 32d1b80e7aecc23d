import torch
import torch.nn as nn

n = 4096
SMALL = {"n": 384}


class Model(nn.Module):
    """A product, a shift, a sigmoid."""

    def forward(self, a, b):
        return torch.sigmoid((a @ b) * 0.05 + 0.1)


def get_inputs():
    return [torch.randn(n, n), torch.randn(n, n)]


def get_init_inputs():
    return []
