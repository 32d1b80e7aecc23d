import torch
import torch.nn as nn

rows, cols = 65536, 64
SMALL = {"rows": 8, "cols": 40}


class Model(nn.Module):
    """Linear recurrence h[t] = a[t] h[t-1] + b[t] along each row, from h = 0, with a in (0, 1)."""

    def forward(self, a, b):
        a, h, out = torch.sigmoid(a), torch.zeros_like(b[:, 0]), []
        for t in range(b.shape[1]):
            h = a[:, t] * h + b[:, t]
            out.append(h)
        return torch.stack(out, dim=1)


def get_inputs():
    return [torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs():
    return []
