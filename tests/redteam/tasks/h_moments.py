import torch
import torch.nn as nn

rows, cols = 8192, 2500
SMALL = {"rows": 12, "cols": 250}


class Model(nn.Module):
    """The standardised rows, their means and their variances: a tuple."""

    def forward(self, x):
        mean, var = x.mean(1), x.var(1, unbiased=False)
        return (x - mean[:, None]) * torch.rsqrt(var[:, None] + 1e-5), mean, var


def get_inputs():
    return [torch.randn(rows, cols) + 0.5]


def get_init_inputs():
    return []
