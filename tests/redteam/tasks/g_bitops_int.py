import torch
import torch.nn as nn

n = 16777216
SMALL = {"n": 1700}


class Model(nn.Module):
    """integer hash of int32 inputs, bucket id and a bool flag"""

    def __init__(self, buckets):
        super().__init__()
        self.buckets = buckets

    def forward(self, x):
        h = x ^ (x >> 7)
        h = (h & 0xFFFF) * 40503
        b = torch.remainder(h, self.buckets)
        return b, b < self.buckets // 2


def get_inputs():
    return [torch.randint(-(2**31), 2**31 - 1, (n,), dtype=torch.int32)]


def get_init_inputs():
    return [100]
