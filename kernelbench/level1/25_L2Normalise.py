import torch

rows, width = 30011, 777
SMALL = {"rows": 20, "width": 77}


class Model(torch.nn.Module):
    """Each row divided by its Euclidean norm."""

    def forward(self, x):
        return x / x.norm(dim=1, keepdim=True).clamp(min=1e-8)


def get_inputs():
    return [torch.randn(rows, width) * (0.1 + 3 * torch.rand(rows, 1))]


def get_init_inputs():
    return []
