import torch

batch, length, width = 20, 1030, 1200
SMALL = {"batch": 2, "length": 40, "width": 70}


class Model(torch.nn.Module):
    """Sum of the elements before each one along the middle axis."""

    def forward(self, x):
        return torch.cumsum(x, dim=1) - x


def get_inputs():
    return [(torch.rand(batch, length, width) - 0.4) * length**-0.5]


def get_init_inputs():
    return []
