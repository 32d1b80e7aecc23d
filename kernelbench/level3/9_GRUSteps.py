import torch

batch, steps, width, hidden = 8192, 6, 250, 384
SMALL = {"batch": 9, "steps": 4, "width": 12, "hidden": 20}


class Model(torch.nn.Module):
    """A gated recurrent unit over a few steps; the states after each."""

    def __init__(self, width, hidden):
        super().__init__()
        self.hidden = hidden
        self.given = torch.nn.Linear(width, 3 * hidden)
        torch.nn.init.normal_(self.given.weight, std=width**-0.5)
        self.before = torch.nn.Linear(hidden, 3 * hidden)
        torch.nn.init.normal_(self.before.weight, std=hidden**-0.5)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.hidden)
        states = []
        for given in self.given(x).unbind(1):
            r, z, n = given.chunk(3, dim=-1)
            hr, hz, hn = self.before(h).chunk(3, dim=-1)
            z = torch.sigmoid(z + hz)
            h = (1 - z) * torch.tanh(n + torch.sigmoid(r + hr) * hn) + z * h
            states.append(h)
        return torch.stack(states, dim=1)


def get_inputs():
    return [torch.randn(batch, steps, width)]


def get_init_inputs():
    return [width, hidden]
