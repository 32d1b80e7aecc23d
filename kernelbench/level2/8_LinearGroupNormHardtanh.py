import torch

rows, width, hidden, groups = 16387, 512, 1480, 8
SMALL = {"rows": 20, "width": 32, "hidden": 80}


class Model(torch.nn.Module):
    """Linear layer, group normalisation of the features, clamped to [-1, 1]."""

    def __init__(self, width, hidden, groups):
        super().__init__()
        self.linear = torch.nn.Linear(width, hidden)
        self.norm = torch.nn.GroupNorm(groups, hidden)
        torch.nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        return torch.nn.functional.hardtanh(self.norm(self.linear(x)))


def get_inputs():
    return [torch.rand(rows, width) * 2 - 0.7]


def get_init_inputs():
    return [width, hidden, groups]
