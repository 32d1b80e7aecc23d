import torch

rows, width, hidden = 35003, 600, 1501
SMALL = {"rows": 40, "width": 30, "hidden": 51}


class Model(torch.nn.Module):
    """Linear layer, tanh, and the dot product of each row with a learned vector."""

    def __init__(self, width, hidden):
        super().__init__()
        self.linear = torch.nn.Linear(width, hidden)
        self.vector = torch.nn.Parameter(torch.randn(hidden) * hidden**-0.5)

    def forward(self, x):
        return torch.tanh(self.linear(x)) @ self.vector


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, hidden]
