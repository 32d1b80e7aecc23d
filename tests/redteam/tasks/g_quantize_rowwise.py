import torch
import torch.nn as nn

rows = 8192
cols = 2048
SMALL = {"rows": 8, "cols": 150}


class Model(nn.Module):
    """symmetric int8 per-row quantisation; returns (int8, scale, dequantised)"""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        s = x.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) * 0.0078125
        q = torch.clamp(torch.round(x / s), -127, 127)
        return q.to(torch.int8), s, q * s


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
