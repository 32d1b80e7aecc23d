import torch
import torch.nn as nn

tokens = 1024
dim = 2048
out = 2048
SMALL = {"tokens": 18, "dim": 40, "out": 20}


class Model(nn.Module):
    """weight-only int8 linear with per-channel scale; weights live in buffers"""

    def __init__(self, dim, out):
        super().__init__()
        self.register_buffer("qweight", torch.randint(-127, 128, (out, dim), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(out) * 0.01 + 0.001)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x):
        return x @ (self.qweight.float() * self.scale[:, None]).T + self.bias


def get_inputs():
    return [torch.randn(tokens, dim)]


def get_init_inputs():
    return [dim, out]
