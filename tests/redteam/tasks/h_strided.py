import torch
import torch.nn as nn

rows, cols = 4096, 3000
SMALL = {"rows": 20, "cols": 150}


class Model(nn.Module):
    """A transposed input and every second column of another one: neither is contiguous."""

    def forward(self, x, y):
        return torch.sin(x) + y * y


def get_inputs():
    return [torch.randn(cols, rows).t(), torch.randn(rows, 2 * cols)[:, ::2]]


def get_init_inputs():
    return []
