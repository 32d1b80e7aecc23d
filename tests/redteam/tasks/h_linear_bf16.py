import torch
import torch.nn as nn
import torch.nn.functional as F

rows, inner, cols = 4096, 1024, 1024
SMALL = {"rows": 24, "inner": 48, "cols": 40}


class Model(nn.Module):
    """A bfloat16 linear layer with SiLU."""

    def __init__(self, inner, cols):
        super().__init__()
        self.linear = nn.Linear(inner, cols).to(torch.bfloat16)

    def forward(self, x):
        return F.silu(self.linear(x))


def get_inputs():
    return [torch.randn(rows, inner).to(torch.bfloat16)]


def get_init_inputs():
    return [inner, cols]
