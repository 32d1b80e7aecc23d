import torch

batch, size, width, classes = 256, 64, 32, 100
SMALL = {"batch": 2, "size": 8, "width": 3, "classes": 5}


class Model(torch.nn.Module):
    """A small image classifier: three convolutions with ReLU and pooling, the mean over positions, a linear head."""

    def __init__(self, width, classes):
        super().__init__()
        self.convs = torch.nn.ModuleList()
        for before, after in ((3, width), (width, 2 * width), (2 * width, 4 * width)):
            self.convs.append(torch.nn.Conv2d(before, after, kernel_size=3, padding=1))
            torch.nn.init.kaiming_normal_(self.convs[-1].weight)
        self.head = torch.nn.Linear(4 * width, classes)
        torch.nn.init.normal_(self.head.weight, std=width**-0.5)

    def forward(self, x):
        for conv in self.convs:
            x = torch.nn.functional.max_pool2d(torch.relu(conv(x)), 2)
        return self.head(x.mean(dim=(2, 3)))


def get_inputs():
    return [torch.randn(batch, 3, size, size)]


def get_init_inputs():
    return [width, classes]
