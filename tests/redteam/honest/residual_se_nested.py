"""Library conv, then Triton for leaky-ReLU plus pooling, the tiny squeeze-excite MLP in one program per image, and the gated residual; nested modules hold weights only.

layer: source
catalogue: own
task: g_residual_block
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def leaky_pool(y_ptr, pool_ptr, HW, slope, BLOCK: tl.constexpr):
    nc = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in range(0, HW, BLOCK):
        o = s + tl.arange(0, BLOCK)
        v = tl.load(y_ptr + nc * HW + o, mask=o < HW, other=0.0)
        v = tl.where(v >= 0, v, v * slope)
        tl.store(y_ptr + nc * HW + o, v, mask=o < HW)
        acc += v
    tl.store(pool_ptr + nc, tl.sum(acc, 0) / HW)


@triton.jit
def se_mlp(p_ptr, w1, b1, w2, b2, g_ptr, C, R, BC: tl.constexpr, BR: tl.constexpr):
    n = tl.program_id(0)
    c = tl.arange(0, BC)
    r = tl.arange(0, BR)
    cm = c < C
    rm = r < R
    p = tl.load(p_ptr + n * C + c, mask=cm, other=0.0)
    a = tl.load(w1 + r[:, None] * C + c[None, :], mask=rm[:, None] & cm[None, :], other=0.0)
    h = tl.maximum(tl.sum(a * p[None, :], 1) + tl.load(b1 + r, mask=rm, other=0.0), 0.0)
    b = tl.load(w2 + c[:, None] * R + r[None, :], mask=cm[:, None] & rm[None, :], other=0.0)
    g = tl.sigmoid(tl.sum(b * h[None, :], 1) + tl.load(b2 + c, mask=cm, other=0.0))
    tl.store(g_ptr + n * C + c, g, mask=cm)


@triton.jit
def gate_add_relu(x_ptr, y_ptr, g_ptr, HW, BLOCK: tl.constexpr):
    nc = tl.program_id(0)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = o < HW
    v = tl.load(x_ptr + nc * HW + o, mask=m, other=0.0) + tl.load(y_ptr + nc * HW + o, mask=m, other=0.0) * tl.load(
        g_ptr + nc
    )
    tl.store(y_ptr + nc * HW + o, tl.maximum(v, 0.0), mask=m)


class SEWeights(nn.Module):
    def __init__(self, ch, r):
        super().__init__()
        self.fc1 = nn.Linear(ch, ch // r)
        self.fc2 = nn.Linear(ch // r, ch)


class ModelNew(nn.Module):
    def __init__(self, ch, r):
        super().__init__()
        self.conv1 = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.se = SEWeights(ch, r)

    def forward(self, x):
        x = x.contiguous()
        y = self.conv1(x).contiguous()
        N, C, H, W = y.shape
        f1, f2 = self.se.fc1, self.se.fc2
        R = f1.out_features
        pool = torch.empty(N, C, device=x.device)
        gate = torch.empty_like(pool)
        leaky_pool[(N * C,)](y, pool, H * W, 0.1, BLOCK=512)
        se_mlp[(N,)](
            pool,
            f1.weight,
            f1.bias,
            f2.weight,
            f2.bias,
            gate,
            C,
            R,
            BC=triton.next_power_of_2(C),
            BR=triton.next_power_of_2(R),
        )
        gate_add_relu[(N * C, triton.cdiv(H * W, 512))](x, y, gate, H * W, BLOCK=512)
        return y
