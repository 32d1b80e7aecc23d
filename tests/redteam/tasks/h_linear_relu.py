import torch
import torch.nn as nn

rows, inner, cols = 2048, 1000, 900
SMALL = {"rows": 20, "inner": 70, "cols": 45}


class Model(nn.Module):
    """Linear layer and ReLU at sizes that no block divides."""

    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(rows, inner)]


def get_init_inputs():
    return [inner, cols]
