"""Scalar arguments are floats and are asked for another dtype in the kernel (AdamW).

layer: source
catalogue: own
task: h_adamw_scalar_arguments
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def adamw_kernel(
    p_ptr,
    g_ptr,
    m_ptr,
    v_ptr,
    p_out,
    m_out,
    v_out,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay,
    step,
    n_elements,
    BLOCK_SIZE: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    p = tl.load(p_ptr + offsets, mask=mask)
    g = tl.load(g_ptr + offsets, mask=mask)
    m = tl.load(m_ptr + offsets, mask=mask)
    v = tl.load(v_ptr + offsets, mask=mask)
    if weight_decay != 0.0:
        p *= 1.0 - lr * weight_decay
    m = tl.fma(m, beta1, g * (1.0 - beta1))
    v = beta2 * v + (1.0 - beta2) * g * g
    correction1 = 1.0 - libdevice.pow(beta1, step.to(tl.float32))
    correction2 = 1.0 - tl.exp(step.to(tl.float32) * tl.log(beta2))
    denom = tl.sqrt(tl.abs(v / correction2)) + eps.to(tl.float32)
    p = p - (lr / correction1) * (m / denom)
    tl.store(p_out + offsets, p.to(p_out.dtype.element_ty), mask=mask)
    tl.store(m_out + offsets, m, mask=mask)
    tl.store(v_out + offsets, v, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, lr, beta1, beta2, eps, decay):
        super().__init__()
        self.hparams = dict(lr=lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=decay)

    def forward(self, p, g, m, v, step):
        outs = [torch.empty_like(t) for t in (p, m, v)]
        n = p.numel()
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)  # noqa: E731
        adamw_kernel[grid](p, g, m, v, *outs, **self.hparams, step=step, n_elements=n, BLOCK_SIZE=4096)
        return tuple(outs)
