import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        y = torch.sigmoid(x) * torch.exp(x * 0.1) + torch.rsqrt(x.abs() + 1)
        return torch.softmax(y.flatten(1), -1), y.flatten(1).cumsum(-1)


def get_inputs():
    return [torch.randn(9, 8, 16)]


def get_init_inputs():
    return []
