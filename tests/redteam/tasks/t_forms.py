import torch
import torch.nn as nn

n, m = 4096, 4096
SMALL = {"n": 100, "m": 300}


class Model(nn.Module):
    """A scaled matrix in half and in double precision, negated, and transposed."""

    def forward(self, x):
        x = x * 1.5
        return x, x.half(), x.double(), -x, x.t().contiguous()


def get_inputs():
    return [torch.randn(n, m)]


def get_init_inputs():
    return []
