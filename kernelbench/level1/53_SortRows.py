import torch

rows, cols = 8003, 2047
SMALL = {"rows": 9, "cols": 255}


class Model(torch.nn.Module):
    """Each row in ascending order."""

    def forward(self, x):
        return torch.sort(x, dim=1).values


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
