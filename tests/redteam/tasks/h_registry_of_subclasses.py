import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.act = act

    def forward(self, x):
        return F.softplus(x) if self.act == "softplus" else F.mish(x)


def get_inputs():
    return [torch.randn(30, 99)]


def get_init_inputs():
    return ["softplus"]
