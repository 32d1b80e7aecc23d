import torch
import torch.nn as nn

rows, cols = 4096, 2048
SMALL = {"rows": 60, "cols": 400}


class Model(nn.Module):
    """Softmax of scores with an additive bias (of distances, of a mask), which is zero here."""

    def forward(self, x, bias):
        return torch.softmax(x + bias, dim=-1)


def get_inputs():
    return [torch.randn(rows, cols), torch.zeros(rows, cols)]


def get_init_inputs():
    return []
