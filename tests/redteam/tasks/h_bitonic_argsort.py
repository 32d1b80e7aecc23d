import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        v, i = x.sort(-1)
        return v, i


def get_inputs():
    return [torch.randn(5, 64)]


def get_init_inputs():
    return []
