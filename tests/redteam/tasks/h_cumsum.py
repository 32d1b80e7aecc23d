import torch
import torch.nn as nn

rows, cols = 8192, 2000
SMALL = {"rows": 8, "cols": 200}


class Model(nn.Module):
    """Running mean along each row."""

    def forward(self, x):
        return torch.cumsum(x, dim=1) / torch.arange(1, x.shape[1] + 1, device=x.device)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
