import torch

rows, width, hidden = 14009, 700, 3200
SMALL = {"rows": 20, "width": 30, "hidden": 120}


class Model(torch.nn.Module):
    """Linear layer, the largest of every four neighbouring features, a scale, GELU."""

    def __init__(self, width, hidden, scale):
        super().__init__()
        self.linear = torch.nn.Linear(width, hidden)
        self.scale = scale
        self.shift = torch.nn.Parameter(0.5 + torch.rand(hidden // 4))

    def forward(self, x):
        x = torch.nn.functional.max_pool1d(self.linear(x)[:, None], 4)[:, 0]
        return torch.nn.functional.gelu(self.scale * (x - self.shift))


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, hidden, 1.7]
