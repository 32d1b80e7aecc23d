"""Integer inputs select rows of a table by addresses made from data.

layer: inputs
catalogue: own
task: h_embedding
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def embed_kernel(id_ptr, table_ptr, pos_ptr, o_ptr, length, width, factor, BLOCK: tl.constexpr):
    token, c = tl.program_id(0), tl.arange(0, BLOCK)
    inside = c < width
    row = tl.load(id_ptr + token)
    x = tl.load(table_ptr + row * width + c, mask=inside)
    p = tl.load(pos_ptr + (token % length) * width + c, mask=inside)
    tl.store(o_ptr + token * width + c, x * factor + p, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, length, width):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(length, width))

    def forward(self, ids):
        batch, length = ids.shape
        width = self.positions.shape[1]
        out = torch.empty(batch, length, width, device=ids.device)
        embed_kernel[(batch * length,)](
            ids, self.tokens.weight, self.positions, out, length, width, width**0.5, BLOCK=triton.next_power_of_2(width)
        )
        return out
