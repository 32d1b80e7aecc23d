import torch
import torch.nn as nn

batch = 32
features = 64
length = 8192
SMALL = {"batch": 3, "features": 6, "length": 50}


class Model(nn.Module):
    """BatchNorm1d in train mode, running stats updated, then ReLU6."""

    def __init__(self, features):
        super().__init__()
        self.bn = nn.BatchNorm1d(features)

    def forward(self, x):
        return torch.nn.functional.relu6(self.bn(x))


def get_inputs():
    return [torch.randn(batch, features, length)]


def get_init_inputs():
    return [features]
