import torch
import torch.nn as nn

n, m = 4096, 4096
SMALL = {"n": 40, "m": 400}


class Model(nn.Module):
    """The largest exponential of each row, repeated over the row."""

    def forward(self, x):
        return torch.exp(x.max(dim=1, keepdim=True).values).repeat(1, x.shape[1])


def get_inputs():
    return [torch.randn(n, m)]


def get_init_inputs():
    return []
