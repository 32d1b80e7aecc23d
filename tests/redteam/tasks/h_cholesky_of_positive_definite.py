import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, A, b):
        return torch.linalg.solve(A, b)


def get_inputs():
    X = torch.randn(9, 8, 24)
    return [X @ X.mT / 24 + torch.eye(8), torch.randn(9, 8)]


def get_init_inputs():
    return []
