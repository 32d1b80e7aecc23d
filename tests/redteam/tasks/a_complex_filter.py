import torch
import torch.nn as nn
import torch.nn.functional as F

rows, width = 4096, 1024
SMALL = {"rows": 32, "width": 256}


class Model(nn.Module):
    """A learned filter of frequencies that starts as all ones (complex), SiLU."""

    def __init__(self, width):
        super().__init__()
        self.filter = nn.Parameter(torch.ones(width // 2 + 1, dtype=torch.cfloat))

    def forward(self, x):
        return F.silu(torch.fft.irfft(torch.fft.rfft(x) * self.filter, n=x.shape[-1]))


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]
