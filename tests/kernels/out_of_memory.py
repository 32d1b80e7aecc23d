import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        big = torch.empty(1 << 40, dtype=torch.uint8, device=x.device)
        return x + big[0]
