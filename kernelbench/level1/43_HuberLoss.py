import torch

rows, cols = 9001, 2100
SMALL = {"rows": 30, "cols": 210}


class Model(torch.nn.Module):
    """Mean Huber loss of each row."""

    def __init__(self, delta):
        super().__init__()
        self.delta = delta

    def forward(self, prediction, target):
        return torch.nn.functional.huber_loss(prediction, target, reduction="none", delta=self.delta).mean(dim=1)


def get_inputs():
    target = 1.5 * torch.randn(rows, cols)
    return [target + 3 * torch.rand(rows, 1) * torch.randn(rows, cols), target]


def get_init_inputs():
    return [0.8]
