import torch
import torch.nn as nn

batch = 64
features = 65536
SMALL = {"batch": 4, "features": 400}


class Model(nn.Module):
    """(x / global Frobenius norm, x / mean |x| per row)"""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x / torch.norm(x, p="fro"), x / x.abs().mean(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(batch, features)]


def get_init_inputs():
    return []
