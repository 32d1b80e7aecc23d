import torch
import torch.nn as nn

batch, length, vocabulary, width = 64, 512, 30000, 384
SMALL = {"batch": 2, "length": 9, "vocabulary": 50, "width": 40}


class Model(nn.Module):
    """Token and position embeddings, summed and scaled."""

    def __init__(self, vocabulary, length, width):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(length, width))

    def forward(self, ids):
        return self.tokens(ids) * self.tokens.embedding_dim**0.5 + self.positions[: ids.shape[1]]


def get_inputs():
    return [torch.randint(0, vocabulary, (batch, length))]


def get_init_inputs():
    return [vocabulary, length, width]
