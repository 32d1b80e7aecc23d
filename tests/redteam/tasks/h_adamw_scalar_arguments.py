import torch
import torch.nn as nn


class Model(nn.Module):
    """One AdamW step; returns parameter, first and second moment."""

    def __init__(self, lr, beta1, beta2, eps, decay):
        super().__init__()
        self.lr, self.b1, self.b2, self.eps, self.decay = lr, beta1, beta2, eps, decay

    def forward(self, p, g, m, v, step):
        m = self.b1 * m + (1 - self.b1) * g
        v = self.b2 * v + (1 - self.b2) * g * g
        mh, vh = m / (1 - self.b1**step), v / (1 - self.b2**step)
        return p * (1 - self.lr * self.decay) - self.lr * mh / (vh.abs().sqrt() + self.eps), m, v


def get_inputs():
    return [torch.randn(40000), torch.randn(40000), torch.randn(40000) * 0.1, torch.rand(40000) * 0.1, 7]


def get_init_inputs():
    return [0.02, 0.9, 0.999, 1e-6, 0.1]
