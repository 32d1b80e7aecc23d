"""Max pool with padding and int64 flat indices, the best index updated with a strict comparison so the first maximum wins.

layer: source
catalogue: own
task: g_maxpool2d_indices
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pool(
    x_ptr, v_ptr, i_ptr, H, W, OH, OW, total, K: tl.constexpr, S: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr
):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = o < total
    ow = o % OW
    oh = (o // OW) % OH
    nc = o // (OH * OW)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    bi = tl.full((BLOCK,), -1, tl.int32)
    for dh in tl.static_range(K):
        for dw in tl.static_range(K):
            h = oh * S - P + dh
            w = ow * S - P + dw
            m = ok & (h >= 0) & (h < H) & (w >= 0) & (w < W)
            v = tl.load(x_ptr + nc * H * W + h * W + w, mask=m, other=float("-inf"))
            take = m & ((v > best) | (bi < 0))
            bi = tl.where(take, h * W + w, bi)
            best = tl.where(take, v, best)
    tl.store(v_ptr + o, best, mask=ok)
    tl.store(i_ptr + o, bi.to(tl.int64), mask=ok)


class ModelNew(nn.Module):
    def __init__(self, k, s, p):
        super().__init__()
        self.k, self.s, self.p = k, s, p

    def forward(self, x):
        n, c, h, w = x.shape
        oh = (h + 2 * self.p - self.k) // self.s + 1
        ow = (w + 2 * self.p - self.k) // self.s + 1
        vals = torch.empty((n, c, oh, ow), device=x.device, dtype=x.dtype)
        idx = torch.empty((n, c, oh, ow), device=x.device, dtype=torch.long)
        pool[(triton.cdiv(vals.numel(), 256),)](
            x.contiguous(), vals, idx, h, w, oh, ow, vals.numel(), K=self.k, S=self.s, P=self.p, BLOCK=256
        )
        return vals, idx
