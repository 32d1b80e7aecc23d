import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.proj = nn.Linear(n, n)

    def forward(self, x):
        return torch.sigmoid(self.proj(x))


def get_inputs():
    return [torch.randn(30, 48)]


def get_init_inputs():
    return [48]
