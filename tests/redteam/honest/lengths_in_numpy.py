"""Lengths of sequences are brought to the host as numpy, where the table of tiles is made (as vLLM's metadata builders do).

layer: source
catalogue: own
task: h_lengths_in_numpy
expect: correct
"""

import numpy as np
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pool(x_ptr, start_ptr, o_ptr, D: tl.constexpr, BLOCK: tl.constexpr):
    s = tl.program_id(0)
    first, last = tl.load(start_ptr + s), tl.load(start_ptr + s + 1)
    i, d = first + tl.arange(0, BLOCK), tl.arange(0, D)
    x = tl.load(x_ptr + i[:, None] * D + d[None, :], mask=(i < last)[:, None], other=-1e30)
    e = tl.exp(x - tl.max(x, 0)[None, :])
    tl.store(o_ptr + s * D + d, tl.sum(tl.where((i < last)[:, None], e * x, 0.0), 0) / tl.sum(e, 0))


class ModelNew(nn.Module):
    def forward(self, x, lens):
        n = lens.cpu().numpy()
        starts = torch.from_numpy(np.concatenate([[0], np.cumsum(n)]).astype(np.int32)).to(x.device)
        o = x.new_empty(len(n), x.shape[1])
        pool[(len(n),)](x, starts, o, D=x.shape[1], BLOCK=triton.next_power_of_2(int(n.max())))
        return o
