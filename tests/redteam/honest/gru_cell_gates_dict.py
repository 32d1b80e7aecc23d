"""GRU cell from two library GEMMs and a fused Triton gate kernel; takes and returns a dict whose counter is passed through torch.

layer: source
catalogue: own
task: g_gru_cell
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _sig(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def gru_gates(gi, gh, h_ptr, o_ptr, H, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = j < H
    q = b * 3 * H + j
    r = _sig(tl.load(gi + q, mask=m, other=0.0) + tl.load(gh + q, mask=m, other=0.0))
    z = _sig(tl.load(gi + q + H, mask=m, other=0.0) + tl.load(gh + q + H, mask=m, other=0.0))
    a = tl.load(gi + q + 2 * H, mask=m, other=0.0) + r * tl.load(gh + q + 2 * H, mask=m, other=0.0)
    n = 2.0 * _sig(2.0 * a) - 1.0
    h = tl.load(h_ptr + b * H + j, mask=m, other=0.0)
    tl.store(o_ptr + b * H + j, n + z * (h - n), mask=m)


class ModelNew(nn.Module):
    def __init__(self, inp, hidden):
        super().__init__()
        self.cell = nn.GRUCell(inp, hidden)

    def forward(self, x, state):
        h = state["h"].contiguous()
        c = self.cell
        gi = torch.addmm(c.bias_ih, x, c.weight_ih.t())
        gh = torch.addmm(c.bias_hh, h, c.weight_hh.t())
        out = torch.empty_like(h)
        B, H = h.shape
        gru_gates[(B, triton.cdiv(H, 256))](gi, gh, h, out, H, BLOCK=256)
        return {"h": out, "step": state["step"] + 1}
