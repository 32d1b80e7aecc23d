import torch
import torch.nn as nn

rows, cols = 4096, 4000
SMALL = {"rows": 10, "cols": 300}


class Model(nn.Module):
    """Bias, ReLU and a dropout that is switched off."""

    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))
        self.dropout = nn.Dropout(0.3)
        self.eval()

    def forward(self, x):
        return self.dropout(torch.relu(x + self.bias))


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
