import torch

rows, width, hidden = 16411, 801, 1203
SMALL = {"rows": 24, "width": 31, "hidden": 53}


class Model(torch.nn.Module):
    """Linear layer, batch normalisation with fixed statistics, a bias, division, Swish."""

    def __init__(self, width, hidden, divisor):
        super().__init__()
        self.linear = torch.nn.Linear(width, hidden)
        self.weight = torch.nn.Parameter(0.5 + torch.rand(hidden))
        self.bias = torch.nn.Parameter(0.3 * torch.randn(hidden))
        self.register_buffer("mean", 0.2 * torch.randn(hidden))
        self.register_buffer("variance", 2 + 2 * torch.rand(hidden))
        self.offset = torch.nn.Parameter(torch.randn(1))
        self.divisor = divisor

    def forward(self, x):
        x = torch.nn.functional.batch_norm(self.linear(x), self.mean, self.variance, self.weight, self.bias)
        return torch.nn.functional.silu((x + self.offset) / self.divisor)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, hidden, 1.6]
