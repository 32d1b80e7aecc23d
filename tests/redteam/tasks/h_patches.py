import torch
import torch.nn as nn

batch, channels, size, side, width = 32, 3, 224, 16, 192
SMALL = {"batch": 1, "channels": 3, "size": 16, "side": 8, "width": 24}


class Model(nn.Module):
    """Patch embedding of images, with a sinusoidal embedding of a time step."""

    def __init__(self, channels, side, width):
        super().__init__()
        self.side = side
        self.proj = nn.Linear(channels * side * side, width)

    def forward(self, images, time):
        b, c, h, w = images.shape
        s = self.side
        patches = images.reshape(b, c, h // s, s, w // s, s).permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * s * s)
        half = self.proj.out_features // 2
        rates = torch.exp(torch.arange(half, device=images.device) * (-9.0 / half))
        angles = time[:, None] * rates
        return self.proj(patches) + torch.cat([angles.sin(), angles.cos()], dim=1)[:, None]


def get_inputs():
    return [torch.randn(batch, channels, size, size), torch.rand(batch) * 10]


def get_init_inputs():
    return [channels, side, width]
