import torch
import torch.nn as nn
import torch.nn.functional as F

rows, width, hidden = 2048, 512, 1024
SMALL = {"rows": 16, "width": 32, "hidden": 64}


class Model(nn.Module):
    """SwiGLU block: down(silu(gate(x)) * up(x))."""

    def __init__(self, width, hidden):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, hidden]
