import torch
import torch.nn as nn

rows, width = 8192, 512
SMALL = {"rows": 48, "width": 256}


class Model(nn.Module):
    """A residual branch with LayerScale as in ConvNeXt and CaiT (1e-6 after initialisation), then layer normalisation."""

    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(1e-6 * torch.ones(width))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.gamma * self.down(torch.nn.functional.gelu(self.up(x)))
        return self.norm(x)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]
