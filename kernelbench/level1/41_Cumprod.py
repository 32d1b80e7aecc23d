import torch

rows, cols = 28001, 1500
SMALL = {"rows": 9, "cols": 150}


class Model(torch.nn.Module):
    """Running product along each row."""

    def forward(self, x):
        return torch.cumprod(x, dim=1)


def get_inputs():
    return [1 + 0.02 * torch.randn(rows, cols)]


def get_init_inputs():
    return []
