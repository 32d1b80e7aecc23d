import torch
import torch.nn as nn

rows, cols = 4096, 2048
SMALL = {"rows": 60, "cols": 400}


class Model(nn.Module):
    """Squared errors, weighted by sample: the mean of each row."""

    def forward(self, x, y, weight):
        return ((x - y).square() * weight[:, None]).mean(1)


def get_inputs():
    return [torch.randn(rows, cols), torch.randn(rows, cols), torch.ones(rows)]


def get_init_inputs():
    return []
