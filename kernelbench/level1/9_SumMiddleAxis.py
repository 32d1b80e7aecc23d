import torch

batch, length, width = 64, 512, 1600
SMALL = {"batch": 3, "length": 20, "width": 70}


class Model(torch.nn.Module):
    """Sum over the middle axis, whose elements do not lie next to each other in memory."""

    def forward(self, x):
        return x.sum(dim=1)


def get_inputs():
    return [torch.randn(batch, length, width) * length**-0.5]


def get_init_inputs():
    return []
