import torch
import torch.nn as nn

rows, cols = 4096, 4000
SMALL = {"rows": 16, "cols": 300}


class Model(nn.Module):
    """Bias, ReLU and an active dropout."""

    def __init__(self, cols, p):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))
        self.dropout = nn.Dropout(p)

    def forward(self, x):
        return self.dropout(torch.relu(x + self.bias) + 0.1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols, 0.25]
