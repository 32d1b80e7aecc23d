import torch

batch, channels, filters, length = 24, 40, 64, 9001
SMALL = {"batch": 2, "channels": 4, "filters": 6, "length": 101}


class Model(torch.nn.Module):
    """1d convolution, then x + sin(a x)^2 / a with a learned a per channel."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = torch.nn.Conv1d(channels, filters, kernel_size=5, padding=2)
        self.frequency = torch.nn.Parameter(1 + torch.rand(filters, 1))

    def forward(self, x):
        x = self.conv(x)
        return x + torch.sin(self.frequency * x).square() / self.frequency


def get_inputs():
    return [2 * torch.randn(batch, channels, length)]


def get_init_inputs():
    return [channels, filters]
