import torch

rows, left, right, hidden = 15013, 300, 421, 1003
SMALL = {"rows": 20, "left": 30, "right": 21, "hidden": 53}


class Model(torch.nn.Module):
    """Two matrices side by side, linear layer, ReLU, a learned scale per feature."""

    def __init__(self, left, right, hidden):
        super().__init__()
        self.linear = torch.nn.Linear(left + right, hidden)
        self.scale = torch.nn.Parameter(torch.randn(hidden))

    def forward(self, x, y):
        return torch.relu(self.linear(torch.cat([x, y], dim=1))) * self.scale


def get_inputs():
    return [torch.randn(rows, left), torch.rand(rows, right)]


def get_init_inputs():
    return [left, right, hidden]
