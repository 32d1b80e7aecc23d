import torch
import torch.nn as nn

rows, cols = 4096, 2048
SMALL = {"rows": 60, "cols": 400}


class Model(nn.Module):
    """Softmax of each row of a scaled matrix, written out operator by operator."""

    def forward(self, x):
        x = x - x.max(dim=-1, keepdim=True).values
        e = torch.exp(x)
        return e / e.sum(dim=-1, keepdim=True)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
