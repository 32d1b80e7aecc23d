import torch
import torch.nn as nn

batch, length, width = 256, 512, 64
SMALL = {"batch": 6, "length": 60, "width": 32}


class Model(nn.Module):
    """The mean over the tokens of each sequence, whose lengths are given (here all are full)."""

    def forward(self, x, lengths):
        on = torch.arange(x.shape[1], device=x.device)[None] < lengths[:, None]
        return (x * on[..., None]).sum(1) / lengths[:, None]


def get_inputs():
    return [torch.randn(batch, length, width), torch.full((batch,), length)]


def get_init_inputs():
    return []
