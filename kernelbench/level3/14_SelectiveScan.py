import torch

batch, length, width, states = 160, 24, 768, 8
SMALL = {"batch": 2, "length": 10, "width": 24, "states": 4}


class Model(torch.nn.Module):
    """A state-space layer: states that decay and take up the input at rates the input sets; read out, gated."""

    def __init__(self, width, states):
        super().__init__()
        self.step = torch.nn.Linear(width, width)
        torch.nn.init.normal_(self.step.weight, std=width**-0.5)
        self.mix = torch.nn.Linear(width, 2 * states)
        torch.nn.init.normal_(self.mix.weight, std=width**-0.5)
        self.gate = torch.nn.Linear(width, width)
        torch.nn.init.normal_(self.gate.weight, std=width**-0.5)
        self.rate = torch.nn.Parameter(2 + torch.rand(width, states))
        self.skip = torch.nn.Parameter(torch.randn(width))

    def forward(self, x):
        step = torch.nn.functional.softplus(self.step(x))
        into, out = self.mix(x).chunk(2, dim=-1)
        decay = torch.exp(-step[..., None] * self.rate)
        taken = (step * x)[..., None] * into[:, :, None, :]
        h = torch.zeros_like(taken[:, 0])
        read = []
        for i in range(x.shape[1]):
            h = decay[:, i] * h + taken[:, i]
            read.append((h * out[:, i, None, :]).sum(dim=-1))
        return (torch.stack(read, dim=1) + self.skip * x) * torch.nn.functional.silu(self.gate(x))


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [width, states]
