import torch

batch, channels, depth, height, width = 8, 37, 48, 65, 67
SMALL = {"batch": 2, "channels": 3, "depth": 9, "height": 11, "width": 13}


class Model(torch.nn.Module):
    """Mean of each 3 x 3 x 3 window, stride 2, with padding."""

    def forward(self, x):
        return torch.nn.functional.avg_pool3d(x, kernel_size=3, stride=2, padding=1)


def get_inputs():
    return [2 * torch.randn(batch, channels, depth, height, width) + 0.2]


def get_init_inputs():
    return []
