import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, q, p):
        q = F.normalize(q, dim=-1)
        w, u = q[:, :1], q[:, 1:]
        t = 2 * torch.linalg.cross(u, p)
        return p + w * t + torch.linalg.cross(u, t)


def get_inputs():
    return [F.normalize(torch.randn(200, 4), dim=-1), torch.randn(200, 3)]


def get_init_inputs():
    return []
