import torch

rows, width, hidden = 20483, 1024, 2048
SMALL = {"rows": 16, "width": 32, "hidden": 64}


class Model(torch.nn.Module):
    """Linear layer, squared ReLU, linear layer, in float16."""

    def __init__(self, width, hidden):
        super().__init__()
        self.up = torch.nn.Linear(width, hidden, dtype=torch.float16)
        self.down = torch.nn.Linear(hidden, width, dtype=torch.float16)
        torch.nn.init.normal_(self.up.weight, std=width**-0.5)
        torch.nn.init.normal_(self.down.weight, std=hidden**-0.5)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)).square())


def get_inputs():
    return [torch.randn(rows, width).half()]


def get_init_inputs():
    return [width, hidden]
