import torch

batch, channels, filters, size = 32, 32, 64, 96
SMALL = {"batch": 2, "channels": 3, "filters": 4, "size": 10}


class Model(torch.nn.Module):
    """Convolution, batch normalisation with fixed statistics, ReLU."""

    def __init__(self, channels, filters):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, filters, kernel_size=3, padding=1, bias=False)
        self.weight = torch.nn.Parameter(0.5 + torch.rand(filters))
        self.bias = torch.nn.Parameter(0.3 * torch.randn(filters))
        self.register_buffer("mean", 0.2 * torch.randn(filters))
        self.register_buffer("variance", 0.2 + torch.rand(filters))

    def forward(self, x):
        x = self.conv(x)
        x = torch.nn.functional.batch_norm(x, self.mean, self.variance, self.weight, self.bias)
        return torch.relu(x)


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [channels, filters]
