import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        raise ValueError("no such luck")
