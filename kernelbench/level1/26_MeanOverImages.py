import torch

batch, channels, height, width = 120, 333, 53, 41
SMALL = {"batch": 3, "channels": 33, "height": 7, "width": 9}


class Model(torch.nn.Module):
    """Mean over the batch and the positions, for each channel."""

    def forward(self, x):
        return x.mean(dim=(0, 2, 3))


def get_inputs():
    return [torch.randn(batch, channels, height, width) + torch.randn(channels, 1, 1)]


def get_init_inputs():
    return []
