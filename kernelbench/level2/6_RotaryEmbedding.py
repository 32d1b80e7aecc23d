import torch

batch, heads, length, width = 8, 16, 2048, 128
SMALL = {"batch": 1, "heads": 2, "length": 6, "width": 16}


class Model(torch.nn.Module):
    """Rotary position embedding: the two halves of each head rotated by angles that grow with the position."""

    def __init__(self, length, width):
        super().__init__()
        frequency = 10000.0 ** (-torch.arange(0, width, 2) / width)
        angle = torch.arange(length)[:, None] * frequency  # (length, width / 2)
        self.register_buffer("cos", torch.cat([angle, angle], dim=-1).cos())
        self.register_buffer("sin", torch.cat([angle, angle], dim=-1).sin())

    def forward(self, x):
        left, right = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat([-right, left], dim=-1) * self.sin


def get_inputs():
    return [torch.randn(batch, heads, length, width)]


def get_init_inputs():
    return [length, width]
