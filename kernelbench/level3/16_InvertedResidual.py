import torch

batch, channels, wide, height, width = 60, 24, 120, 93, 89
SMALL = {"batch": 2, "channels": 4, "wide": 8, "height": 9, "width": 11}


class ConvNorm(torch.nn.Module):
    """Convolution without bias, batch normalisation with fixed statistics."""

    def __init__(self, before, after, size, stride=1, groups=1):
        super().__init__()
        self.conv = torch.nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
        torch.nn.init.normal_(self.conv.weight, std=(size * size * before // groups) ** -0.5)
        self.weight = torch.nn.Parameter(0.7 + 0.6 * torch.rand(after))
        self.bias = torch.nn.Parameter(0.3 * torch.randn(after))
        self.register_buffer("mean", 0.2 * torch.randn(after))
        self.register_buffer("variance", 1.8 + 0.4 * torch.rand(after))

    def forward(self, x):
        return torch.nn.functional.batch_norm(self.conv(x), self.mean, self.variance, self.weight, self.bias)


class Model(torch.nn.Module):
    """Normalised convolutions: pointwise to more channels, depthwise, pointwise back; ReLU6 between; residual."""

    def __init__(self, channels, wide):
        super().__init__()
        self.widen = ConvNorm(channels, wide, 1)
        self.depth = ConvNorm(wide, wide, 3, groups=wide)
        self.narrow = ConvNorm(wide, channels, 1)

    def forward(self, x):
        y = torch.nn.functional.relu6(self.depth(torch.nn.functional.relu6(self.widen(x))))
        return x + self.narrow(y)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels, wide]
