"""A patch embedding with a time embedding: patch and time are words of the trade here, and `time` is an input whose
attributes are read.

layer: source
catalogue: 14.03
task: h_patches
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def time_embedding_kernel(time_ptr, o_ptr, half, width, BLOCK: tl.constexpr):
    image, i = tl.program_id(0), tl.arange(0, BLOCK)
    t = tl.load(time_ptr + image)
    angle = t * tl.exp((i % half).to(tl.float32) * (-9.0 / half))
    tl.store(o_ptr + image * width + i, tl.where(i < half, tl.sin(angle), tl.cos(angle)), mask=i < width)


@triton.jit
def patch_kernel(
    image_ptr,
    w_ptr,
    b_ptr,
    time_ptr,
    o_ptr,
    rows,
    width,
    channels,
    size,
    side,
    per_image,
    per_row,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    image, patch = m // per_image, m % per_image
    corner = image * channels * size * size + (patch // per_row) * side * size + (patch % per_row) * side
    K = channels * side * side
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        inner = (k // (side * side)) * size * size + ((k // side) % side) * size + k % side
        x = tl.load(
            image_ptr + corner[:, None] + inner[None, :], mask=(m[:, None] < rows) & (k[None, :] < K), other=0.0
        )
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < width) & (k[:, None] < K), other=0.0)
        acc += tl.dot(x, w, input_precision="ieee")
    inside = (m[:, None] < rows) & (n[None, :] < width)
    acc += tl.load(b_ptr + n, mask=n < width, other=0.0)[None, :]
    acc += tl.load(time_ptr + image[:, None] * width + n[None, :], mask=inside, other=0.0)
    tl.store(o_ptr + m[:, None] * width + n[None, :], acc, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, channels, side, width):
        super().__init__()
        self.side = side
        self.proj = nn.Linear(channels * side * side, width)

    def forward(self, images, time):
        b, c, size, _ = images.shape
        width, per_row = self.proj.out_features, size // self.side
        embedded = torch.empty(b, width, device=time.device, dtype=time.dtype)
        time_embedding_kernel[(b,)](time, embedded, width // 2, width, BLOCK=triton.next_power_of_2(width))
        rows = b * per_row * per_row
        out = torch.empty(b, per_row * per_row, width, device=images.device)
        grid = (triton.cdiv(rows, 32), triton.cdiv(width, 32))
        patch_kernel[grid](
            *(images, self.proj.weight, self.proj.bias, embedded, out, rows, width),
            *(c, size, self.side, per_row * per_row, per_row),
            BM=32,
            BN=32,
            BK=32,
        )
        return out
