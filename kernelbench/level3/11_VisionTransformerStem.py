import torch

batch, size, patch, width, heads = 64, 224, 16, 384, 6
SMALL = {"batch": 1, "size": 24, "patch": 6, "width": 32, "heads": 2}


class Attention(torch.nn.Module):
    """Self-attention with several heads between linear layers."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        torch.nn.init.normal_(self.qkv.weight, std=1.5 * width**-0.5)
        torch.nn.init.normal_(self.out.weight, std=2 * width**-0.5)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Model(torch.nn.Module):
    """Images cut into patches, a linear map of each, learned places; one layer of self-attention and an MLP."""

    def __init__(self, size, patch, width, heads):
        super().__init__()
        self.patches = torch.nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        self.places = torch.nn.Parameter(torch.randn((size // patch) ** 2, width))
        self.before_attention = torch.nn.LayerNorm(width)
        torch.nn.init.normal_(self.before_attention.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.before_attention.bias, std=0.3)
        self.attention = Attention(width, heads)
        self.before_mlp = torch.nn.LayerNorm(width)
        torch.nn.init.normal_(self.before_mlp.weight, mean=1.0, std=0.3)
        torch.nn.init.normal_(self.before_mlp.bias, std=0.3)
        self.up = torch.nn.Linear(width, 4 * width)
        torch.nn.init.normal_(self.up.weight, std=width**-0.5)
        self.down = torch.nn.Linear(4 * width, width)
        torch.nn.init.normal_(self.down.weight, std=(4 * width) ** -0.5)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        x = x + self.attention(self.before_attention(x))
        return x + self.down(torch.nn.functional.gelu(self.up(self.before_mlp(x))))


def get_inputs():
    return [torch.randn(batch, 3, size, size)]


def get_init_inputs():
    return [size, patch, width, heads]
