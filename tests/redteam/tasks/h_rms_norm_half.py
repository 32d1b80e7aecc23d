import torch
import torch.nn as nn

rows, cols = 8192, 2000
SMALL = {"rows": 10, "cols": 200}


class Model(nn.Module):
    """RMSNorm in half precision, computed in float32 inside."""

    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols, dtype=torch.float16))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).half() * self.weight


def get_inputs():
    return [torch.randn(rows, cols, dtype=torch.float16)]


def get_init_inputs():
    return [cols]
