import torch
import torch.nn as nn

heads, length, width = 4096, 64, 64
SMALL = {"heads": 8, "length": 64, "width": 32}


class Model(nn.Module):
    """Attention of three arguments, called as self-attention is: with one tensor three times."""

    def forward(self, q, k, v):
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        return torch.softmax(scores, dim=-1) @ v


def get_inputs():
    x = torch.randn(heads, length, width)
    return [x, x, x]


def get_init_inputs():
    return []
