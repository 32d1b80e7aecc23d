import torch
import torch.nn as nn

rows, cols = 4096, 4000
SMALL = {"rows": 12, "cols": 300}


class Model(nn.Module):
    """Rectifies its input in place and returns it scaled."""

    def forward(self, x):
        return x.relu_() * 1.5


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
