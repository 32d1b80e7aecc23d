import torch

batch, length, width, heads = 4, 1024, 1024, 16
SMALL = {"batch": 1, "length": 12, "width": 32, "heads": 2}


class Model(torch.nn.Module):
    """Causal self-attention with several heads, between linear layers, and a residual."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        torch.nn.init.normal_(self.qkv.weight, std=width**-0.5)
        torch.nn.init.normal_(self.out.weight, std=2 * width**-0.5)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # (batch, heads, length, d)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [width, heads]
