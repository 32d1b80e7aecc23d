import torch
import torch.nn as nn


class Model(nn.Module):
    """Samples from piecewise-constant densities, as NeRF does."""

    def forward(self, knots, values, u):
        i = torch.searchsorted(knots, u, right=True).clamp(1, knots.shape[1] - 1)
        x0, x1 = knots.gather(1, i - 1), knots.gather(1, i)
        y0, y1 = values.gather(1, i - 1), values.gather(1, i)
        t = (u - x0) / (x1 - x0).clamp_min(1e-3)
        return y0 + t * (y1 - y0)


def get_inputs():
    return [torch.rand(20, 33).sort(-1).values * 4 - 2, torch.randn(20, 33), torch.rand(20, 50) * 4 - 2]


def get_init_inputs():
    return []
