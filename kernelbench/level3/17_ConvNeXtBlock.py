import torch

batch, channels, size = 41, 96, 56
SMALL = {"batch": 2, "channels": 12, "size": 8}


class Model(torch.nn.Module):
    """Depthwise convolution, layer normalisation of the channels, two linear layers with GELU, scale, residual."""

    def __init__(self, channels):
        super().__init__()
        self.depth = torch.nn.Conv2d(channels, channels, kernel_size=7, padding=3, groups=channels)
        self.norm = torch.nn.LayerNorm(channels)
        torch.nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.norm.bias, std=0.3)
        self.up = torch.nn.Linear(channels, 4 * channels)
        torch.nn.init.normal_(self.up.weight, std=channels**-0.5)
        self.down = torch.nn.Linear(4 * channels, channels)
        torch.nn.init.normal_(self.down.weight, std=(4 * channels) ** -0.5)
        self.scale = torch.nn.Parameter(0.5 + torch.rand(channels))

    def forward(self, x):
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        y = self.down(torch.nn.functional.gelu(self.up(y))) * self.scale
        return x + y.permute(0, 3, 1, 2)


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [channels]
