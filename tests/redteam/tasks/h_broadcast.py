import torch
import torch.nn as nn

rows, cols = 4096, 2048
SMALL = {"rows": 12, "cols": 100}


class Model(nn.Module):
    """A column, a row that is a flipped view, and a number without dimensions, spread over each other."""

    def forward(self, column, row, number):
        return torch.atan2(column, row.flip(0)) + number


def get_inputs():
    return [torch.randn(rows, 1).expand(rows, 1), torch.randn(cols, 2)[:, 1], torch.randn(())]


def get_init_inputs():
    return []
