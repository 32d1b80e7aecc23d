import torch
import torch.nn as nn

size = 1 << 24
SMALL = {"size": 5000}


class Model(nn.Module):
    """Integer arithmetic, exact to the last digit."""

    def forward(self, x, y):
        return x * 3 + y


def get_inputs():
    return [torch.randint(0, 1 << 28, (size,), dtype=torch.int32) for _ in range(2)]


def get_init_inputs():
    return []
