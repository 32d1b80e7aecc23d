import torch
import torch.nn as nn

batch = 32
cin = 16
cout = 32
size = 112
SMALL = {"batch": 2, "cin": 3, "cout": 5, "size": 7}


class Model(nn.Module):
    """conv, eval batch norm (running stats), relu"""

    def __init__(self, cin, cout, k):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, k, padding=k // 2)
        self.bn = nn.BatchNorm2d(cout)
        self.bn.running_mean.uniform_(-0.5, 0.5)
        self.bn.running_var.uniform_(0.5, 2.0)
        self.eval()

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


def get_inputs():
    return [torch.randn(batch, cin, size, size)]


def get_init_inputs():
    return [cin, cout, 3]
