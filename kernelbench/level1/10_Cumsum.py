import torch

rows, cols = 8192, 4000
SMALL = {"rows": 8, "cols": 200}


class Model(torch.nn.Module):
    """Running sum along each row."""

    def forward(self, x):
        return torch.cumsum(x, dim=1)


def get_inputs():
    return [torch.randn(rows, cols) * cols**-0.5]


def get_init_inputs():
    return []
