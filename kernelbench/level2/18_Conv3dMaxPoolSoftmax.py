import torch

batch, channels, filters, depth, height, width = 19, 12, 20, 25, 65, 59
SMALL = {"batch": 1, "channels": 3, "filters": 5, "depth": 7, "height": 9, "width": 11}


class Model(torch.nn.Module):
    """3d convolution, max pooling, softmax over the channels."""

    def __init__(self, channels, filters, sharpness):
        super().__init__()
        self.conv = torch.nn.Conv3d(channels, filters, kernel_size=3, padding=1)
        self.sharpness = sharpness

    def forward(self, x):
        x = torch.nn.functional.max_pool3d(self.conv(x), 2)
        return torch.softmax(self.sharpness * x, dim=1)


def get_inputs():
    return [torch.randn(batch, channels, depth, height, width)]


def get_init_inputs():
    return [channels, filters, 4.0]
