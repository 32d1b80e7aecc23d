import torch

rows, width = 20011, 513
SMALL = {"rows": 40, "width": 53}


class Model(torch.nn.Module):
    """Triplet loss of each row: how much closer the positive should be to the anchor than the negative."""

    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative):
        return torch.nn.functional.triplet_margin_loss(anchor, positive, negative, margin=self.margin, reduction="none")


def get_inputs():
    scale = width**-0.5
    return [torch.randn(rows, width) * scale for _ in range(3)]


def get_init_inputs():
    return [0.1]
