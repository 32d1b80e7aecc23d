import torch
import torch.nn as nn

batch = 2
seq = 512
dim = 1024
nh = 16
nkv = 4
SMALL = {"batch": 1, "seq": 10, "dim": 64, "nh": 4, "nkv": 2}


class Model(nn.Module):
    """grouped-query attention with rotary embedding and an additive mask input"""

    def __init__(self, dim, nh, nkv, max_seq):
        super().__init__()
        self.nh, self.nkv, self.hd = nh, nkv, dim // nh
        self.wq = nn.Linear(dim, nh * self.hd, bias=False)
        self.wk = nn.Linear(dim, nkv * self.hd, bias=False)
        self.wv = nn.Linear(dim, nkv * self.hd, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        inv = 1.0 / (10000 ** (torch.arange(0, self.hd, 2).float() / self.hd))
        f = torch.outer(torch.arange(max_seq).float(), inv)
        self.register_buffer("cos", f.cos())
        self.register_buffer("sin", f.sin())

    def rope(self, t, S):
        a, b = t[..., : self.hd // 2], t[..., self.hd // 2 :]
        c, s = self.cos[:S], self.sin[:S]
        return torch.cat((a * c - b * s, b * c + a * s), -1)

    def forward(self, x, bias):
        B, S, _ = x.shape
        q = self.rope(self.wq(x).view(B, S, self.nh, self.hd).transpose(1, 2), S)
        k = self.rope(self.wk(x).view(B, S, self.nkv, self.hd).transpose(1, 2), S)
        v = self.wv(x).view(B, S, self.nkv, self.hd).transpose(1, 2)
        r = self.nh // self.nkv
        k, v = k.repeat_interleave(r, 1), v.repeat_interleave(r, 1)
        p = torch.softmax(q @ k.transpose(-1, -2) * self.hd**-0.5 + bias, -1)
        return self.wo((p @ v).transpose(1, 2).reshape(B, S, -1))


def get_inputs():
    return [torch.randn(batch, seq, dim), torch.randn(batch, 1, seq, seq)]


def get_init_inputs():
    return [dim, nh, nkv, seq]
