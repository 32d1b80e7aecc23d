import torch

batch, channels, filters, height, width = 44, 48, 96, 91, 87
SMALL = {"batch": 2, "channels": 4, "filters": 6, "height": 9, "width": 11}


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
    """Two 3 x 3 convolutions with normalisation, the first with stride 2, and a 1 x 1 convolution around them; ReLU."""

    def __init__(self, channels, filters):
        super().__init__()
        self.first = ConvNorm(channels, filters, 3, stride=2)
        self.second = ConvNorm(filters, filters, 3)
        self.around = ConvNorm(channels, filters, 1, stride=2)

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))) + self.around(x))


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels, filters]
