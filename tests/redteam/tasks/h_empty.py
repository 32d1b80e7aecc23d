import torch
import torch.nn as nn

rows, cols, heads = 4096, 4000, 0
SMALL = {"rows": 10, "cols": 200}


class Model(nn.Module):
    """Appends to a cache that is still empty, and squares; the second output has no elements at all."""

    def forward(self, cache, x):
        return torch.cat([cache, x]) ** 2, cache * 2


def get_inputs():
    return [torch.empty(heads, cols), torch.randn(rows, cols)]


def get_init_inputs():
    return []
