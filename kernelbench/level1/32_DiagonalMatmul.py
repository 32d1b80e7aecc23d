import torch

n, m = 4003, 3001
SMALL = {"n": 63, "m": 51}


class Model(torch.nn.Module):
    """Product of a diagonal matrix, given by its diagonal, and a matrix."""

    def forward(self, d, b):
        return torch.diag(d) @ b


def get_inputs():
    return [torch.randn(n), torch.randn(n, m)]


def get_init_inputs():
    return []
