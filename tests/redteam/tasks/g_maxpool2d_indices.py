import torch
import torch.nn as nn

batch = 16
channels = 64
size = 128
SMALL = {"batch": 2, "channels": 3, "size": 15}


class Model(nn.Module):
    def __init__(self, k, s, p):
        super().__init__()
        self.k, self.s, self.p = k, s, p

    def forward(self, x):
        return torch.nn.functional.max_pool2d(x, self.k, self.s, self.p, return_indices=True)


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [3, 2, 1]
