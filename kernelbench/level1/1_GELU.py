import torch

rows, cols = 4096, 8192
SMALL = {"rows": 12, "cols": 300}


class Model(torch.nn.Module):
    """Gaussian error linear unit, exact form, of every element."""

    def forward(self, x):
        return torch.nn.functional.gelu(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
