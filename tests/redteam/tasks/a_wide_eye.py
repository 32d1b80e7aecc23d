import torch
import torch.nn as nn
import torch.nn.functional as F

rows, width, hidden = 4096, 512, 1024
SMALL = {"rows": 32, "width": 64, "hidden": 128}


class Model(nn.Module):
    """A widening layer that starts as the identity with zeros below (eye_), SiLU."""

    def __init__(self, width, hidden):
        super().__init__()
        self.linear = nn.Linear(width, hidden)
        nn.init.eye_(self.linear.weight)

    def forward(self, x):
        return F.silu(self.linear(x))


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, hidden]
