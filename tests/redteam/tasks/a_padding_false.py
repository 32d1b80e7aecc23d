import torch
import torch.nn as nn

rows, cols = 4096, 2048
SMALL = {"rows": 60, "cols": 400}


class Model(nn.Module):
    """Softmax over the keys that are no padding (key_padding_mask: True is padding, of which there is none here)."""

    def forward(self, x, padding):
        return torch.softmax(x.masked_fill(padding, -1e9), dim=-1)


def get_inputs():
    return [torch.randn(rows, cols), torch.zeros(rows, cols, dtype=torch.bool)]


def get_init_inputs():
    return []
