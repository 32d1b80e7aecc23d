import torch
import torch.nn as nn


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class Model(nn.Module):
    def forward(self, q, k, cos, sin):
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def get_inputs():
    inv = 1.0 / 10000 ** (torch.arange(0, 32, 2).float() / 32)
    freqs = torch.outer(torch.arange(24).float(), inv)
    emb = torch.cat((freqs, freqs), -1)[None]
    return [torch.randn(2, 4, 24, 32), torch.randn(2, 2, 24, 32), emb.cos(), emb.sin()]


def get_init_inputs():
    return []
