import torch
import torch.nn as nn

rows, steps = 8192, 1024
SMALL = {"rows": 60, "steps": 400}


class Model(nn.Module):
    """The integral of each row over the times at which it was sampled."""

    def forward(self, y, t):
        return ((y[:, 1:] + y[:, :-1]) * 0.5 * (t[1:] - t[:-1])).sum(1)


def get_inputs():
    return [torch.randn(rows, steps), torch.linspace(0, 4, steps)]


def get_init_inputs():
    return []
