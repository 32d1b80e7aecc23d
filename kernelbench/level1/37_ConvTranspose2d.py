import torch

batch, channels, filters, height, width = 48, 48, 32, 56, 57
SMALL = {"batch": 2, "channels": 4, "filters": 3, "height": 9, "width": 8}


class Model(torch.nn.Module):
    """Transposed 4 x 4 convolution with stride 2, which doubles the image."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = torch.nn.ConvTranspose2d(channels, filters, kernel_size=4, stride=2, padding=1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels, filters]
