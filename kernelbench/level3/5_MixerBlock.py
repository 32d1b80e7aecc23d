import torch

batch, length, width, tokens, hidden = 128, 196, 512, 256, 2048
SMALL = {"batch": 2, "length": 19, "width": 32, "tokens": 24, "hidden": 64}


class Model(torch.nn.Module):
    """MLP-Mixer: an MLP over the positions of each channel, one over the channels of each position, residuals."""

    def __init__(self, length, width, tokens, hidden):
        super().__init__()
        self.before_tokens = torch.nn.LayerNorm(width)
        torch.nn.init.normal_(self.before_tokens.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.before_tokens.bias, std=0.3)
        self.tokens_up = torch.nn.Linear(length, tokens)
        torch.nn.init.normal_(self.tokens_up.weight, std=length**-0.5)
        self.tokens_down = torch.nn.Linear(tokens, length)
        torch.nn.init.normal_(self.tokens_down.weight, std=tokens**-0.5)
        self.before_channels = torch.nn.LayerNorm(width)
        torch.nn.init.normal_(self.before_channels.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.before_channels.bias, std=0.3)
        self.up = torch.nn.Linear(width, hidden)
        torch.nn.init.normal_(self.up.weight, std=width**-0.5)
        self.down = torch.nn.Linear(hidden, width)
        torch.nn.init.normal_(self.down.weight, std=hidden**-0.5)

    def forward(self, x):
        y = self.before_tokens(x).transpose(1, 2)
        x = x + self.tokens_down(torch.nn.functional.gelu(self.tokens_up(y))).transpose(1, 2)
        return x + self.down(torch.nn.functional.gelu(self.up(self.before_channels(x))))


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [length, width, tokens, hidden]
