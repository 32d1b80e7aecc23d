import torch
import torch.nn as nn

vocab = 8192
seq = 256
batch = 16
dim = 512
SMALL = {"vocab": 50, "seq": 7, "batch": 2, "dim": 24}


class Model(nn.Module):
    """token + position embedding, dropout in eval, tied output head"""

    def __init__(self, vocab, seq, dim):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(seq, dim)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.tok.weight
        self.eval()

    def forward(self, ids):
        h = self.drop(self.tok(ids) + self.pos.weight[: ids.shape[1]])
        return self.head(torch.relu(h))


def get_inputs():
    return [torch.randint(0, vocab, (batch, seq))]


def get_init_inputs():
    return [vocab, seq, dim]
