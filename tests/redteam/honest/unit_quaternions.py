"""Rotates points by unit quaternions, as get_inputs makes them: nothing to normalise in the kernel (gsplat keeps them so).

layer: inputs
catalogue: own
task: h_unit_quaternions
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rotate(q_ptr, p_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    live = i < n
    w = tl.load(q_ptr + i * 4, mask=live, other=0.0)
    a = tl.load(q_ptr + i * 4 + 1, mask=live, other=0.0)
    b = tl.load(q_ptr + i * 4 + 2, mask=live, other=0.0)
    c = tl.load(q_ptr + i * 4 + 3, mask=live, other=0.0)
    x = tl.load(p_ptr + i * 3, mask=live, other=0.0)
    y = tl.load(p_ptr + i * 3 + 1, mask=live, other=0.0)
    z = tl.load(p_ptr + i * 3 + 2, mask=live, other=0.0)
    tx, ty, tz = 2 * (b * z - c * y), 2 * (c * x - a * z), 2 * (a * y - b * x)
    tl.store(o_ptr + i * 3, x + w * tx + b * tz - c * ty, mask=live)
    tl.store(o_ptr + i * 3 + 1, y + w * ty + c * tx - a * tz, mask=live)
    tl.store(o_ptr + i * 3 + 2, z + w * tz + a * ty - b * tx, mask=live)


class ModelNew(nn.Module):
    def forward(self, q, p):
        o = torch.empty_like(p)
        rotate[(triton.cdiv(len(q), 64),)](q, p, o, len(q), B=64)
        return o
