import torch
import torch.nn as nn

rows, width = 4096, 256
SMALL = {"rows": 32, "width": 64}


class Model(nn.Module):
    """One step of an LSTM whose forget gate has a bias of one after initialisation."""

    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, 4 * width, bias=False)
        bias = torch.zeros(4 * width)
        bias[width : 2 * width] = 1.0
        self.bias = nn.Parameter(bias)

    def forward(self, x, c):
        i, f, g, o = (self.mix(x) + self.bias).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


def get_inputs():
    return [torch.randn(rows, width), torch.randn(rows, width)]


def get_init_inputs():
    return [width]
