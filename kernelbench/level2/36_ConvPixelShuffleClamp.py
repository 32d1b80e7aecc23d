import torch

batch, channels, colours, height, width = 32, 32, 9, 101, 111
SMALL = {"batch": 2, "channels": 4, "colours": 3, "height": 9, "width": 11}


class Model(torch.nn.Module):
    """3 x 3 convolution, four channels spread over the pixels of 2 x 2 blocks, scaled, clamped."""

    def __init__(self, channels, colours, scale):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, 4 * colours, kernel_size=3, padding=1)
        self.scale = scale

    def forward(self, x):
        return (torch.nn.functional.pixel_shuffle(self.conv(x), 2) * self.scale + 0.5).clamp(0, 1)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels, colours, 0.6]
