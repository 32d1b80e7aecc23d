"""Configurations are ranked by a roofline model that asks Triton for the device's bandwidth and peak.

layer: source
catalogue: own
task: h_linear_relu
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def estimated_ms(M, N, K, BM, BN, BK, num_warps, num_stages, **_):
    device = torch.cuda.current_device()
    bandwidth = triton.testing.get_dram_gbps(device)
    flops = triton.testing.get_max_simd_tflops(torch.float32, 1.5e6, device)
    tiles = triton.cdiv(M, BM) * triton.cdiv(N, BN)
    loaded = tiles * K * (BM + BN) * 4 + 4 * M * N
    return max(loaded / bandwidth / 1e6, 2 * M * N * K / flops / 1e9)


@triton.autotune(
    [triton.Config({"BM": m, "BN": n, "BK": 16}, num_warps=4, num_stages=3) for m in (16, 32) for n in (16, 32)],
    key=["M", "N", "K"],
    prune_configs_by={"perf_model": estimated_ms, "top_k": 2},
)
@triton.jit
def linear_relu(x_ptr, w_ptr, b_ptr, o_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k, mask=(m[:, None] < M) & (k < K), other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc += tl.dot(x, w, input_precision="ieee")
    acc += tl.load(b_ptr + n, mask=n < N, other=0.0)
    tl.store(o_ptr + m[:, None] * N + n, tl.maximum(acc, 0.0), mask=(m[:, None] < M) & (n < N))


class ModelNew(nn.Module):
    def __init__(self, *args):
        super().__init__()
        self.linear = nn.Linear(*args)

    def forward(self, x):
        (M, K), N = x.shape, self.linear.out_features
        o = torch.empty(M, N, device=x.device)

        def grid(meta):
            return (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))

        linear_relu[grid](x, self.linear.weight, self.linear.bias, o, M, N, K)
        return o
