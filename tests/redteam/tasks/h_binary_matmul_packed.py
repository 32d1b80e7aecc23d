import torch
import torch.nn as nn


class Model(nn.Module):
    """Product of +-1 activations with +-1 weights."""

    def __init__(self, k, n):
        super().__init__()
        self.register_buffer("weight", torch.randint(0, 2, (n, k)).float() * 2 - 1)

    def forward(self, x):
        return x @ self.weight.t()


def get_inputs():
    return [torch.randint(0, 2, (64, 128)).float() * 2 - 1]


def get_init_inputs():
    return [128, 32]
