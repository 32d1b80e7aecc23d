import torch

rows, width = 12000, 3001
SMALL = {"rows": 10, "width": 301}


class Model(torch.nn.Module):
    """Each row divided by its root mean square, with a learned weight."""

    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(0.5 + torch.rand(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6) * self.weight


def get_inputs():
    return [torch.randn(rows, width) * (0.2 + 2 * torch.rand(rows, 1))]


def get_init_inputs():
    return [width]
