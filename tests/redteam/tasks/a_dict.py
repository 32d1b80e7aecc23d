import torch
import torch.nn as nn

rows, cols = 4096, 2048
SMALL = {"rows": 60, "cols": 400}


class Model(nn.Module):
    """A batch that comes in a dict: ReLU, a root, a shift."""

    def forward(self, batch):
        return torch.relu(batch["x"]).sqrt() * 1.7 + torch.abs(batch["y"])


def get_inputs():
    return [{"x": torch.rand(rows, cols), "y": torch.rand(rows, cols)}]


def get_init_inputs():
    return []
