import torch
import torch.nn as nn

rows, cols = 256, 65536
SMALL = {"rows": 4, "cols": 2048}


class Model(nn.Module):
    """Softmax over long rows: the right answer is tiny everywhere."""

    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.rand(rows, cols)]


def get_init_inputs():
    return []
