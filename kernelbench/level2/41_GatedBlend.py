import torch

rows, width = 15001, 901
SMALL = {"rows": 20, "width": 41}


class Model(torch.nn.Module):
    """A blend of two matrices, weighted by the sigmoid of a linear layer of the first."""

    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        torch.nn.init.normal_(self.linear.weight, std=2 * width**-0.5)

    def forward(self, x, y):
        gate = torch.sigmoid(self.linear(x))
        return gate * x + (1 - gate) * y


def get_inputs():
    return [torch.randn(rows, width), 2 * torch.randn(rows, width)]


def get_init_inputs():
    return [width]
