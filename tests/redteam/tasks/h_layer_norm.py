import torch
import torch.nn as nn

rows, cols = 8192, 1500
SMALL = {"rows": 10, "cols": 150}


class Model(nn.Module):
    """Residual sum, then LayerNorm with weight and bias (which start as ones and zeros)."""

    def __init__(self, cols):
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, x, residual):
        return self.norm(x + residual)


def get_inputs():
    return [torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
