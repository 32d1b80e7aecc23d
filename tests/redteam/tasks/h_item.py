import torch
import torch.nn as nn

rows, cols = 4096, 3000
SMALL = {"rows": 12, "cols": 300}


class Model(nn.Module):
    """A squashed tensor, and its mean as a Python number."""

    def forward(self, x):
        y = torch.tanh(x) * 3.0 + 1.0
        return y, y.mean().item()


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
