import torch

batch, channels, filters, height, width = 32, 40, 72, 113, 97
SMALL = {"batch": 2, "channels": 4, "filters": 6, "height": 9, "width": 11}


class Model(torch.nn.Module):
    """Three 3 x 3 convolutions with ReLU, then max pooling."""

    def __init__(self, channels, filters):
        super().__init__()
        self.convs = torch.nn.ModuleList()
        for before in (channels, filters, filters):
            self.convs.append(torch.nn.Conv2d(before, filters, kernel_size=3, padding=1))
            torch.nn.init.kaiming_normal_(self.convs[-1].weight)

    def forward(self, x):
        for conv in self.convs:
            x = torch.relu(conv(x))
        return torch.nn.functional.max_pool2d(x, 2)


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return [channels, filters]
