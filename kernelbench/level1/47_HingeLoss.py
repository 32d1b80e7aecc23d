import torch

rows, cols = 6007, 3300
SMALL = {"rows": 12, "cols": 330}


class Model(torch.nn.Module):
    """Hinge loss of every score with a target of -1 or 1."""

    def forward(self, score, target):
        return torch.relu(1 - score * target)


def get_inputs():
    return [1.5 * torch.randn(rows, cols), torch.randn(rows, cols).sign()]


def get_init_inputs():
    return []
