import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, sigmas, s):
        i = len(sigmas) - torch.searchsorted(sigmas.flip(0), s)
        return i, s * 0.5


def get_inputs():
    ramp = torch.linspace(0, 1, 40)
    return [(80 ** (1 / 7) + ramp * (0.002 ** (1 / 7) - 80 ** (1 / 7))) ** 7, torch.rand(100) * 80]


def get_init_inputs():
    return []
