import torch
import torch.nn as nn


class Model(nn.Module):
    """Standardises rows and returns the mean."""

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + 1e-5), mean.squeeze(-1)


def get_inputs():
    return [torch.randn(128, 500)]


def get_init_inputs():
    return []
