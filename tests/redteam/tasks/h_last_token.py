import torch
import torch.nn as nn

batch, length, width, classes = 64, 512, 768, 16
SMALL = {"batch": 2, "length": 9, "width": 24, "classes": 5}


class Model(nn.Module):
    """RMSNorm of every token, then a classifier of the last token alone."""

    def __init__(self, width, classes):
        super().__init__()
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return self.head(x[:, -1])


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [width, classes]
