import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.tanh(torch.relu(x * 1.5) + y)
