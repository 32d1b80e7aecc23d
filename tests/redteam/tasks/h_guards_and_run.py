import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.hardtanh(x * torch.tanh(F.softplus(x)), -0.2, 1.5)


def get_inputs():
    return [torch.randn(64, 700)]


def get_init_inputs():
    return []
