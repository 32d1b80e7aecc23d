import torch
import torch.nn as nn

rows, cols = 8192, 4096
SMALL = {"rows": 16, "cols": 300}


class Model(nn.Module):
    """Zero by construction: one column minus its own mean over that column."""

    def forward(self, x):
        x = x.max(dim=1, keepdim=True).values
        x = x - x.mean(dim=1, keepdim=True)
        return torch.nn.functional.gelu(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
