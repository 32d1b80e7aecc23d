"""Relies on soft labels that add up to one.

layer: source
catalogue: own
task: h_soft_label_cross_entropy
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def soft_xent(x_ptr, t_ptr, loss_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf"))
    t = tl.load(t_ptr + row * n_cols + cols, mask=mask, other=0.0)
    m = tl.max(x, 0)
    lse = m + tl.log(tl.sum(tl.exp(x - m), 0))
    # the targets sum to one, so -sum(t * (x - lse)) = lse - sum(t * x)
    loss = lse - tl.sum(t * tl.where(mask, x, 0.0), 0)
    tl.atomic_add(loss_ptr, loss / n_rows)


class ModelNew(nn.Module):
    def forward(self, logits, target):
        n, c = logits.shape
        loss = torch.zeros((), device=logits.device, dtype=torch.float32)
        soft_xent[(n,)](logits, target, loss, n, c, BLOCK=triton.next_power_of_2(c))
        return loss
