import torch
import torch.nn as nn

count, bounds = 8_000_000, 63
SMALL = {"count": 5000, "bounds": 15}


class Model(nn.Module):
    """The bucket of each value between boundaries that rise."""

    def forward(self, x, boundaries):
        return torch.bucketize(x, boundaries)


def get_inputs():
    return [torch.randn(count), torch.sort(torch.randn(bounds)).values]


def get_init_inputs():
    return []
