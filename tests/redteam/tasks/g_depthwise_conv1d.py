import torch
import torch.nn as nn

batch = 8
length = 4096
dim = 512
SMALL = {"batch": 2, "length": 33, "dim": 12}


class Model(nn.Module):
    """causal depthwise conv over (B, L, D) as in mamba, with silu"""

    def __init__(self, dim, k):
        super().__init__()
        self.k = k
        self.conv = nn.Conv1d(dim, dim, k, groups=dim, padding=k - 1)

    def forward(self, x):
        y = self.conv(x.transpose(1, 2))[..., : x.shape[1]]
        return torch.nn.functional.silu(y).transpose(1, 2)


def get_inputs():
    return [torch.randn(batch, length, dim)]


def get_init_inputs():
    return [dim, 4]
