import torch
import torch.nn as nn


class Model(nn.Module):
    """Gemm, multiply, leaky ReLU (KernelBench level 2, 12)."""

    def __init__(self, n, m, multiplier, slope):
        super().__init__()
        self.gemm = nn.Linear(n, m)
        self.multiplier = multiplier
        self.leaky_relu = nn.LeakyReLU(slope)

    def forward(self, x):
        return self.leaky_relu(self.gemm(x) * self.multiplier)


def get_inputs():
    return [torch.randn(30, 48)]


def get_init_inputs():
    return [48, 40, 2.0, 0.1]
