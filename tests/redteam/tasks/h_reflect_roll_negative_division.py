import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Reflect padding, then a roll; and a downsampled sum of taps on either side."""

    def forward(self, x):
        y = torch.roll(F.pad(x, (3, 3), mode="reflect"), -2, -1)
        t = F.pad(x, (4, 4))
        n = x.shape[-1]
        z = sum(t[:, 4 + math.trunc((k - 3) / 2) :][:, :n] for k in range(7))
        return y * 2, z


def get_inputs():
    return [torch.randn(32, 200)]


def get_init_inputs():
    return []
