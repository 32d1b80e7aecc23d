import torch
import torch.nn as nn

rows = 16384
cols = 4096
SMALL = {"rows": 12, "cols": 200}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.argmax(x, dim=1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
