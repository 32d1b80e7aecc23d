import torch

rows, width, hidden = 8192, 1024, 2816
SMALL = {"rows": 20, "width": 32, "hidden": 72}


class Model(torch.nn.Module):
    """Two linear layers of the same input, one through SiLU, multiplied."""

    def __init__(self, width, hidden):
        super().__init__()
        self.gate = torch.nn.Linear(width, hidden, bias=False)
        self.up = torch.nn.Linear(width, hidden, bias=False)

    def forward(self, x):
        return torch.nn.functional.silu(self.gate(x)) * self.up(x)


def get_inputs():
    return [2 * torch.randn(rows, width)]


def get_init_inputs():
    return [width, hidden]
