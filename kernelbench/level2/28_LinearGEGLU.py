import torch

rows, width, hidden = 10007, 640, 1320
SMALL = {"rows": 20, "width": 32, "hidden": 60}


class Model(torch.nn.Module):
    """Linear layer whose one half, through GELU, multiplies the other."""

    def __init__(self, width, hidden):
        super().__init__()
        self.linear = torch.nn.Linear(width, 2 * hidden)
        torch.nn.init.normal_(self.linear.weight, std=width**-0.5)

    def forward(self, x):
        gate, value = self.linear(x).chunk(2, dim=-1)
        return torch.nn.functional.gelu(gate) * value


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, hidden]
