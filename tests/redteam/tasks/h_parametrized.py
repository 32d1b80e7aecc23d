import torch
import torch.nn as nn

batch, width, hidden = 2048, 512, 768
SMALL = {"batch": 16, "width": 40, "hidden": 48}


class Model(nn.Module):
    """Weight-normalised and plain layers in a ModuleDict, scales in a ParameterDict."""

    def __init__(self, width, hidden):
        super().__init__()
        weight_norm = torch.nn.utils.parametrizations.weight_norm
        layers = {"up": weight_norm(nn.Linear(width, hidden)), "down": nn.Linear(hidden, width, bias=False)}
        self.layers = nn.ModuleDict(layers)
        self.scales = nn.ParameterDict(
            {"one": nn.Parameter(torch.ones(hidden)), "two": nn.Parameter(torch.rand(width))}
        )

    def forward(self, x):
        return self.layers["down"](torch.tanh(self.layers["up"](x)) * self.scales["one"]) * self.scales["two"]


def get_inputs():
    return [torch.randn(batch, width)]


def get_init_inputs():
    return [width, hidden]
