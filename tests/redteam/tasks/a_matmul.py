import torch
import torch.nn as nn

m, k, n = 1024, 1024, 1024
SMALL = {"m": 32, "k": 64, "n": 96}


class Model(nn.Module):
    """A product of two matrices."""

    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs():
    return []
