import torch

entries, batch, length, width = 50021, 48, 777, 768
SMALL = {"entries": 99, "batch": 3, "length": 9, "width": 48}


class Model(torch.nn.Module):
    """Rows of a table for each word, a learned row for its position added, layer normalisation."""

    def __init__(self, entries, length, width):
        super().__init__()
        self.words = torch.nn.Embedding(entries, width)
        self.places = torch.nn.Parameter(torch.randn(length, width))
        self.norm = torch.nn.LayerNorm(width)
        torch.nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, index):
        return self.norm(self.words(index) + self.places)


def get_inputs():
    return [torch.randint(0, entries, (batch, length))]


def get_init_inputs():
    return [entries, length, width]
