"""One GEMM kernel used for both layers with a constexpr activation switch, upcasting bf16 loads and casting on the last store; dropout is dropped because the task is in eval mode.

layer: source
catalogue: own
task: g_bf16_mlp_dropout
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_act(
    x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, ACT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0).to(
            tl.float32
        )
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    acc += tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
    if ACT == "elu":
        acc = tl.where(acc > 0, acc, tl.exp(tl.minimum(acc, 0.0)) - 1.0)
    elif ACT == "softsign":
        acc = acc / (1.0 + tl.abs(acc))
    tl.store(
        y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N)
    )


def dense(x, layer: nn.Linear, act: str, dtype):
    M, K = x.shape
    N = layer.out_features
    y = torch.empty(M, N, device=x.device, dtype=dtype)
    linear_act[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        x, layer.weight, layer.bias, y, M, N, K, ACT=act, BM=64, BN=64, BK=32
    )
    return y


class ModelNew(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden), nn.ELU(1.0), nn.Dropout(0.2), nn.Linear(hidden, dim), nn.Softsign()
        )
        self.eval()

    def forward(self, x):
        h = dense(x.contiguous(), self.net[0], "elu", torch.float32)
        return dense(h, self.net[3], "softsign", torch.bfloat16)
