import torch
import torch.nn as nn

rows, cols = 4096, 4000
SMALL = {"rows": 12, "cols": 300}


class Model(nn.Module):
    """Scales and casts to a dtype that the constructor is given."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, x):
        return (torch.sin(x) * 2.0).to(self.dtype)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [torch.float16]
