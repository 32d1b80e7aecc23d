import torch
import torch.nn as nn

rows, cols = 4096, 3000
SMALL = {"rows": 12, "cols": 300}


class Model(nn.Module):
    """A residual stream: the input itself comes back beside its normalised copy."""

    def forward(self, x):
        return x, x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
