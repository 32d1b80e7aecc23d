import torch

batch, channels, height, width = 32, 100, 57, 59
SMALL = {"batch": 2, "channels": 8, "height": 9, "width": 7}


class Model(torch.nn.Module):
    """Four branches side by side: 1 x 1 convolution; 1 x 1, 3 x 3; 1 x 1, 5 x 5; max pooling, 1 x 1; all with ReLU."""

    def __init__(self, channels):
        super().__init__()
        half, quarter = channels // 2, channels // 4
        self.narrow = torch.nn.Conv2d(channels, half, 1)
        self.to_middle = torch.nn.Conv2d(channels, half, 1)
        self.middle = torch.nn.Conv2d(half, channels, 3, padding=1)
        self.to_wide = torch.nn.Conv2d(channels, quarter, 1)
        self.wide = torch.nn.Conv2d(quarter, half, 5, padding=2)
        self.pooled = torch.nn.Conv2d(channels, half, 1)

    def forward(self, x):
        narrow = torch.relu(self.narrow(x))
        middle = torch.relu(self.middle(torch.relu(self.to_middle(x))))
        wide = torch.relu(self.wide(torch.relu(self.to_wide(x))))
        pooled = torch.relu(self.pooled(torch.nn.functional.max_pool2d(x, 3, stride=1, padding=1)))
        return torch.cat([narrow, middle, wide, pooled], dim=1)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels]
