import torch

n = 3001
SMALL = {"n": 61}


class Model(torch.nn.Module):
    """Product of the lower triangles of two matrices."""

    def forward(self, a, b):
        return torch.tril(a) @ torch.tril(b)


def get_inputs():
    return [torch.randn(n, n), torch.randn(n, n) * n**-0.5]


def get_init_inputs():
    return []
