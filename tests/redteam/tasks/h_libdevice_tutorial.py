import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.asin(x.clamp(-0.9, 0.9))


def get_inputs():
    return [torch.rand(9000) * 2 - 1]


def get_init_inputs():
    return []
