import torch
import torch.nn as nn

count, bins = 4_000_000, 64
SMALL = {"count": 5000, "bins": 16}


class Model(nn.Module):
    """How often each label occurs: integers in, integers out."""

    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, labels):
        return torch.bincount(labels, minlength=self.bins)


def get_inputs():
    return [torch.randint(0, bins, (count,))]


def get_init_inputs():
    return [bins]
