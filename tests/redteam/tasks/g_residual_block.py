import torch
import torch.nn as nn

batch = 16
ch = 64
size = 56
SMALL = {"batch": 1, "ch": 8, "size": 9}


class SE(nn.Module):
    def __init__(self, ch, r):
        super().__init__()
        self.fc1 = nn.Linear(ch, ch // r)
        self.fc2 = nn.Linear(ch // r, ch)

    def forward(self, x):
        s = x.mean((2, 3))
        s = torch.sigmoid(self.fc2(torch.relu(self.fc1(s))))
        return x * s[:, :, None, None]


class Model(nn.Module):
    def __init__(self, ch, r):
        super().__init__()
        self.conv1 = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.se = SE(ch, r)

    def forward(self, x):
        return torch.relu(x + self.se(torch.nn.functional.leaky_relu(self.conv1(x), 0.1)))


def get_inputs():
    return [torch.randn(batch, ch, size, size)]


def get_init_inputs():
    return [ch, 4]
