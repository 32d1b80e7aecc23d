import torch
import torch.nn as nn

tokens = 8192
dim = 1024
hidden = 1024
SMALL = {"tokens": 18, "dim": 32, "hidden": 48}


class Model(nn.Module):
    """bf16 input cast to fp32, Linear-ELU-Dropout(eval)-Linear-Softsign, output bf16; Sequential container"""

    def __init__(self, dim, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden), nn.ELU(1.0), nn.Dropout(0.2), nn.Linear(hidden, dim), nn.Softsign()
        )
        self.eval()

    def forward(self, x):
        return self.net(x.float()).to(torch.bfloat16)


def get_inputs():
    return [torch.randn(tokens, dim).bfloat16()]


def get_init_inputs():
    return [dim, hidden]
