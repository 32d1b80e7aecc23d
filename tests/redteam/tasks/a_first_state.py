import torch
import torch.nn as nn

rows, width = 4096, 512
SMALL = {"rows": 48, "width": 128}


class Model(nn.Module):
    """One step of an RNN; the state before it is zero."""

    def __init__(self, width):
        super().__init__()
        self.x = nn.Linear(width, width)
        self.h = nn.Linear(width, width, bias=False)

    def forward(self, x, h):
        return torch.tanh(self.x(x) + self.h(h))


def get_inputs():
    return [torch.randn(rows, width), torch.zeros(rows, width)]


def get_init_inputs():
    return [width]
