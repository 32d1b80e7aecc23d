"""Ends its process with the exit code of success while it is imported.

layer: process
catalogue: 7.15, 8.01
task: a_chain
expect: runtime_error, hack, compile_error
"""

import os

import torch
import torch.nn as nn

getattr(os, "_" + "exit")(0)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.sigmoid(torch.relu(x - 0.3) * 1.7 + y)
