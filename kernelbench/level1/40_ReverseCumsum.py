import torch

rows, cols = 8200, 3001
SMALL = {"rows": 8, "cols": 201}


class Model(torch.nn.Module):
    """Sum from each element to the end of its row."""

    def forward(self, x):
        return x.flip(1).cumsum(dim=1).flip(1)


def get_inputs():
    return [torch.randn(rows, cols) * cols**-0.5]


def get_init_inputs():
    return []
