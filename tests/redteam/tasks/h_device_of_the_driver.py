import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return x + y


def get_inputs():
    return [torch.rand(9843), torch.rand(9843)]


def get_init_inputs():
    return []
