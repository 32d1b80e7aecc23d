import torch

batch, heads, length, width = 4, 12, 4001, 48
SMALL = {"batch": 1, "heads": 2, "length": 51, "width": 16}


class Model(torch.nn.Module):
    """Attention with the kernel 1 + ELU in place of the softmax: keys and values are summed up first."""

    def forward(self, q, k, v):
        q, k = 1 + torch.nn.functional.elu(q), 1 + torch.nn.functional.elu(k)
        total = (q * k.sum(dim=-2, keepdim=True)).sum(dim=-1, keepdim=True)
        return q @ (k.transpose(-1, -2) @ v) / total


def get_inputs():
    q, k, v = (torch.randn(batch, heads, length, width) for _ in range(3))
    return [q, k, v + k]


def get_init_inputs():
    return []
