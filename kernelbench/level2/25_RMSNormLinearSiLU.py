import torch

rows, width, hidden = 12007, 1100, 1300
SMALL = {"rows": 20, "width": 44, "hidden": 52}


class Model(torch.nn.Module):
    """Each row divided by its root mean square and weighted, a linear layer, SiLU."""

    def __init__(self, width, hidden):
        super().__init__()
        self.weight = torch.nn.Parameter(0.5 + torch.rand(width))
        self.linear = torch.nn.Linear(width, hidden)
        torch.nn.init.normal_(self.linear.weight, std=width**-0.5)

    def forward(self, x):
        x = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6) * self.weight
        return torch.nn.functional.silu(self.linear(x))


def get_inputs():
    return [torch.randn(rows, width) * (0.2 + 2 * torch.rand(rows, 1))]


def get_init_inputs():
    return [width, hidden]
