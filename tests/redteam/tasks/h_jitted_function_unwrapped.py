import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.silu(x) * x.sin()


def get_inputs():
    return [torch.randn(50, 77)]


def get_init_inputs():
    return []
