import torch
import torch.nn as nn

rows, cols = 8192, 2000
SMALL = {"rows": 12, "cols": 200}


class Model(nn.Module):
    """Softmax of each row with a temperature."""

    def forward(self, x):
        return torch.softmax(x / 1.7, dim=-1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
