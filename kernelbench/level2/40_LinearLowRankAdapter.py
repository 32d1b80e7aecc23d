import torch

rows, width, hidden, rank = 12289, 1024, 1111, 24
SMALL = {"rows": 20, "width": 32, "hidden": 51, "rank": 4}


class Model(torch.nn.Module):
    """Linear layer, plus the input through two thin matrices and a scale."""

    def __init__(self, width, hidden, rank, scale):
        super().__init__()
        self.linear = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Parameter(torch.randn(width, rank) * width**-0.5)
        self.up = torch.nn.Parameter(torch.randn(rank, hidden) * rank**-0.5)
        self.scale = scale

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.down @ self.up)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, hidden, rank, 1.7]
