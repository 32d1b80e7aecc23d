import torch

rows, cols = 9001, 4001
SMALL = {"rows": 10, "cols": 301}


class Model(torch.nn.Module):
    """Every element times its sigmoid."""

    def forward(self, x):
        return torch.nn.functional.silu(x)


def get_inputs():
    return [2 * torch.randn(rows, cols)]


def get_init_inputs():
    return []
