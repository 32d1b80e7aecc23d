import torch

batch, channels, height, width = 30, 37, 181, 203
SMALL = {"batch": 2, "channels": 7, "height": 13, "width": 15}


class Model(torch.nn.Module):
    """Each channel of each image normalised by its own mean and variance."""

    def forward(self, x):
        return torch.nn.functional.instance_norm(x)


def get_inputs():
    return [torch.rand(batch, channels, height, width).square() * (0.5 + torch.rand(channels, 1, 1))]


def get_init_inputs():
    return []
