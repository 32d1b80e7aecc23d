import torch

rows, cols, count = 29001, 2400, 9
SMALL = {"rows": 20, "cols": 240}


class Model(torch.nn.Module):
    """The largest values of each row in descending order."""

    def __init__(self, count):
        super().__init__()
        self.count = count

    def forward(self, x):
        return torch.topk(x, self.count, dim=1).values


def get_inputs():
    return [torch.randn(rows, cols) * 3 * torch.rand(rows, 1)]


def get_init_inputs():
    return [count]
