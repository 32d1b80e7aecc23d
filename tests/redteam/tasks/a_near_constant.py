import torch
import torch.nn as nn

rows, cols = 4096, 2048
SMALL = {"rows": 16, "cols": 300}


class Model(nn.Module):
    """The sigmoid of a softmax: close to one half everywhere."""

    def forward(self, x):
        return torch.sigmoid(torch.softmax(x, dim=-1))


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
