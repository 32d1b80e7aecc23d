import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Multi-scale deformable attention (sampling part)."""

    def __init__(self, shapes):
        super().__init__()
        self.register_buffer("spatial_shapes", torch.tensor(shapes, dtype=torch.int64))
        self.shapes = shapes

    def forward(self, value, loc, attn):
        B, S, M, D = value.shape
        _, Q, _, L, P, _ = loc.shape
        parts, out = value.split([h * w for h, w in self.shapes], dim=1), []
        grid = 2 * loc - 1
        for l, (h, w) in enumerate(self.shapes):
            v = parts[l].permute(0, 2, 3, 1).reshape(B * M, D, h, w)
            g = grid[:, :, :, l].transpose(1, 2).flatten(0, 1)
            out.append(F.grid_sample(v, g, mode="bilinear", padding_mode="zeros", align_corners=False))
        a = attn.transpose(1, 2).reshape(B * M, 1, Q, L * P)
        return (torch.stack(out, dim=-2).flatten(-2) * a).sum(-1).view(B, M * D, Q).transpose(1, 2).contiguous()


def get_inputs():
    return [
        torch.randn(1, 80, 2, 8),
        torch.rand(1, 3, 2, 2, 4, 2),
        torch.softmax(torch.randn(1, 3, 2, 8), -1).view(1, 3, 2, 2, 4),
    ]


def get_init_inputs():
    return [[(8, 8), (4, 4)]]
