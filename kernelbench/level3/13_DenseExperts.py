import torch

rows, width, hidden, experts = 12007, 512, 700, 6
SMALL = {"rows": 20, "width": 24, "hidden": 20, "experts": 3}


class Model(torch.nn.Module):
    """A softmax gate over experts of two linear layers with SiLU; every expert sees every row; residual."""

    def __init__(self, width, hidden, experts):
        super().__init__()
        self.gate = torch.nn.Linear(width, experts)
        torch.nn.init.normal_(self.gate.weight, std=width**-0.5)
        self.up = torch.nn.Parameter(torch.randn(experts, width, hidden) * width**-0.5)
        self.down = torch.nn.Parameter(2 * torch.randn(experts, hidden, width) * hidden**-0.5)

    def forward(self, x):
        gate = torch.softmax(self.gate(x), dim=-1)
        hidden = torch.nn.functional.silu(torch.einsum("rw,ewh->erh", x, self.up))
        answers = torch.bmm(hidden, self.down)
        return x + (gate.T[:, :, None] * answers).sum(dim=0)


def get_inputs():
    return [1.5 * torch.randn(rows, width)]


def get_init_inputs():
    return [width, hidden, experts]
