import torch
import torch.nn as nn

batch = 16
nh = 16
nkv = 4
cache = 2048
hd = 64
SMALL = {"batch": 2, "nh": 4, "nkv": 2, "cache": 20, "hd": 16}


class Model(nn.Module):
    """one query token per sequence against a KV cache with per-sequence lengths"""

    def __init__(self):
        super().__init__()

    def forward(self, q, kv, lengths):
        k, v = kv
        r = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(r, 1), v.repeat_interleave(r, 1)
        s = torch.einsum("bhd,bhtd->bht", q, k) / q.shape[-1] ** 0.5
        hide = torch.arange(k.shape[2], device=q.device)[None, None, :] >= lengths[:, None, None]
        p = torch.softmax(s.masked_fill(hide, float("-inf")), -1)
        return torch.einsum("bht,bhtd->bhd", p, v)


def get_inputs():
    return [
        torch.randn(batch, nh, hd),
        (torch.randn(batch, nkv, cache, hd), torch.randn(batch, nkv, cache, hd)),
        torch.randint(1, cache + 1, (batch,), dtype=torch.int32),
    ]


def get_init_inputs():
    return []
