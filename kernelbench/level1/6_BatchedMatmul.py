import torch

batch, m, k, n = 64, 512, 384, 512
SMALL = {"batch": 3, "m": 40, "k": 32, "n": 36}


class Model(torch.nn.Module):
    """Products of many pairs of matrices."""

    def forward(self, a, b):
        return torch.bmm(a, b)


def get_inputs():
    return [torch.randn(batch, m, k), torch.randn(batch, k, n) * k**-0.5]


def get_init_inputs():
    return []
