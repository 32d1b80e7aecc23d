import torch

rows, width = 20001, 1024
SMALL = {"rows": 21, "width": 48}


class Model(torch.nn.Module):
    """Linear layer, Mish, and the input added with a scale, in bfloat16."""

    def __init__(self, width, scale):
        super().__init__()
        self.linear = torch.nn.Linear(width, width, dtype=torch.bfloat16)
        self.scale = scale

    def forward(self, x):
        return torch.nn.functional.mish(self.linear(x)) + self.scale * x


def get_inputs():
    return [(1.5 * torch.randn(rows, width)).bfloat16()]


def get_init_inputs():
    return [width, 0.5]
