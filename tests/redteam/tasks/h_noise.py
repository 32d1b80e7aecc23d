import torch
import torch.nn as nn

rows, cols = 4096, 4000
SMALL = {"rows": 16, "cols": 300}


class Model(nn.Module):
    """Gaussian noise of standard deviation 0.1 beside a tanh."""

    def forward(self, x):
        return torch.tanh(x) + 0.1 * torch.randn_like(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
