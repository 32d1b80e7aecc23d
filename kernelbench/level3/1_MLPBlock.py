import torch

batch, length, width = 4, 2048, 1024
SMALL = {"batch": 2, "length": 6, "width": 32}


class Model(torch.nn.Module):
    """A Transformer's feed-forward block: layer normalisation, two linear layers with GELU between, residual."""

    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)
        torch.nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.norm.bias, std=0.3)
        torch.nn.init.normal_(self.down.weight, std=width**-0.5)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [width]
