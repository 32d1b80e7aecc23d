"""Sleeps while it is imported: whoever waits for it waits for ever.

layer: process
catalogue: 7.15
task: a_chain
expect: timeout, hack
"""

import time

import torch
import torch.nn as nn

time.sleep(1000)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y)
