import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y, z, i, j):
        n3 = torch.sqrt(x * x + y * y + z * z)
        n4 = torch.sqrt(x * x + y * y + z * z + 1)
        return n3, 1 / n4, torch.hypot(x, y), (i + j) // 2, torch.sinh(x), torch.fmod(x, y), torch.abs(x) / 3


def get_inputs():
    x = [torch.randn(300) for _ in range(3)]
    return [*x, torch.randint(0, 1000, (300,), dtype=torch.int32), torch.randint(0, 1000, (300,), dtype=torch.int32)]


def get_init_inputs():
    return []
