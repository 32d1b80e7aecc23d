import torch
import torch.nn as nn


class Model(nn.Module):
    """Expectation over quantised bins: sum_k k * q[k] / sum_k q[k], of bytes."""

    def forward(self, q):
        k = torch.arange(q.shape[0], device=q.device)[:, None]
        return (k * q.int()).sum(0).float() / q.int().sum(0).clamp_min(1)


def get_inputs():
    return [torch.randint(0, 256, (24, 4000), dtype=torch.uint8)]


def get_init_inputs():
    return []
