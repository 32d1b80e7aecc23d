import torch

rows, width = 12011, 1501
SMALL = {"rows": 20, "width": 61}


class Model(torch.nn.Module):
    """Sum of two matrices, layer normalisation, GELU, a scale."""

    def __init__(self, width, scale):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        torch.nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.norm.bias, std=0.3)
        self.scale = scale

    def forward(self, x, residual):
        return self.scale * torch.nn.functional.gelu(self.norm(x + residual))


def get_inputs():
    return [torch.randn(rows, width), 2 * torch.rand(rows, width) - 0.5]


def get_init_inputs():
    return [width, 1.7]
