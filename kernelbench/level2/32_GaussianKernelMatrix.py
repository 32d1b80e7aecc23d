import torch

m, n, width = 5003, 4999, 24
SMALL = {"m": 103, "n": 99}


class Model(torch.nn.Module):
    """Exponential of minus the scaled squared distance of every row of one matrix to every row of another."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, y):
        distance = x.square().sum(dim=1)[:, None] + y.square().sum(dim=1) - 2 * x @ y.T
        return torch.exp(-distance.clamp(min=0) * self.scale)


def get_inputs():
    return [torch.randn(m, width), torch.randn(n, width)]


def get_init_inputs():
    return [0.06]
