import torch
import torch.nn as nn
import torch.nn.functional as F

rows, cols = 4096, 4000
SMALL = {"rows": 16, "cols": 300}


class Model(nn.Module):
    """Mean squared error: a tensor without dimensions."""

    def forward(self, prediction, target):
        return F.mse_loss(prediction, target)


def get_inputs():
    return [torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs():
    return []
