"""Attention over a paged key-value cache, for generation at size (`engine.py`).

`decode`: one query per sequence, split over its keys (flash decoding), in Triton. `prefill`: packed prompts through the flash kernel
inside PyTorch. `write`: new keys and values into their pages. Where flash-attn is installed, it does the first two. On the CPU each has a
plain twin, which is the definition. The Triton kernels run under the interpreter as well, and our own gym judges them
(`tests/kernels/paged_task.py`).

Shapes: B sequences, T packed tokens, H query heads, K key-value heads (H a multiple of K), D head size, N pages of P tokens; D and P are powers of two, 16 or more.
A sequence's token t lies in page table[b, t // P], at t % P. Not covered: sliding windows, sinks, soft caps.
"""

import importlib.util
import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

FLASH_ATTN = importlib.util.find_spec("flash_attn") is not None
HALF = (torch.bfloat16, torch.float16)
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


# ------------------------------------------------------------------------------------------------------------- kernels


@triton.jit
def split_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, part_ptr, lse_ptr, out_ptr, scale, q_sequence, q_head, page_stride, table_stride,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr,
    SPLITS: tl.constexpr, LEAST: tl.constexpr,
):  # fmt: skip
    """Softmax over one of SPLITS ranges of a sequence's keys, for the GROUP query heads of one key-value head: (ROWS, D).
    Ranges are whole blocks, LEAST keys or more; programs beyond the last range leave at once. Where there is one range, it is the result."""
    b, h, s = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(length_ptr + b)
    ranges = tl.maximum(tl.minimum(SPLITS, (length + LEAST - 1) // LEAST), 1)
    size = ((length + ranges * BLOCK - 1) // (ranges * BLOCK)) * BLOCK
    start = s * size
    if (SPLITS > 1) & (start >= length):
        return
    end = tl.minimum(start + size, length)
    rows, d, n = tl.arange(0, ROWS), tl.arange(0, D), tl.arange(0, BLOCK)
    head = h * GROUP + rows
    q = tl.load(q_ptr + b * q_sequence + head[:, None] * q_head + d[None, :], mask=rows[:, None] < GROUP, other=0.0)
    best = tl.full([ROWS], float("-inf"), tl.float32)  # in units of log 2, as all exponents here
    total = tl.zeros([ROWS], tl.float32)
    out = tl.zeros([ROWS, D], tl.float32)
    for at in range(start, end, BLOCK):
        page = tl.load(table_ptr + b * table_stride + at // PAGE).to(tl.int64)
        first = page * page_stride + (at % PAGE) * KV_HEADS * D + h * D
        inside = at + n < end
        k = tl.load(k_ptr + first + n[None, :] * KV_HEADS * D + d[:, None], mask=inside[None, :], other=0.0)
        v = tl.load(v_ptr + first + n[:, None] * KV_HEADS * D + d[None, :], mask=inside[:, None], other=0.0)
        score = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        score = tl.where(inside[None, :], score, float("-inf"))
        top = tl.maximum(best, tl.max(score, 1))
        p = tl.exp2(score - top[:, None])
        shrink = tl.exp2(best - top)
        out = out * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        total = total * shrink + tl.sum(p, 1)
        best = top
    place = (b * KV_HEADS * GROUP + head) * SPLITS + s
    if SPLITS == 1:
        out = out / tl.maximum(total, 1e-30)[:, None]
        tl.store(
            out_ptr + place[:, None] * D + d[None, :], out.to(out_ptr.dtype.element_ty), mask=rows[:, None] < GROUP
        )
        return
    tl.store(part_ptr + place[:, None] * D + d[None, :], out / total[:, None], mask=rows[:, None] < GROUP)
    tl.store(lse_ptr + place, best + tl.log2(total), mask=rows < GROUP)


@triton.jit
def merge_kernel(
    part_ptr, lse_ptr, length_ptr, out_ptr, HEADS: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr,
    LEAST: tl.constexpr,
):  # fmt: skip
    """The ranges of one sequence and head into one: Σ 2^lse_s part_s / Σ 2^lse_s; zeros for a sequence of length 0."""
    b, h = tl.program_id(0), tl.program_id(1)
    length = tl.load(length_ptr + b)
    ranges = tl.maximum(tl.minimum(SPLITS, (length + LEAST - 1) // LEAST), 1)
    size = ((length + ranges * BLOCK - 1) // (ranges * BLOCK)) * BLOCK
    s, d = tl.arange(0, SPLITS), tl.arange(0, D)
    filled = s * size < length
    place = (b * HEADS + h) * SPLITS + s
    lse = tl.load(lse_ptr + place, mask=filled, other=-1e30)
    weight = tl.where(filled, tl.exp2(lse - tl.max(lse, 0)), 0.0)
    part = tl.load(part_ptr + place[:, None] * D + d[None, :], mask=filled[:, None], other=0.0)
    out = tl.sum(part * weight[:, None], 0) / tl.maximum(tl.sum(weight, 0), 1e-30)
    tl.store(out_ptr + (b * HEADS + h) * D + d, out.to(out_ptr.dtype.element_ty))


@triton.jit
def write_kernel(
    k_ptr,
    v_ptr,
    k_pages_ptr,
    v_pages_ptr,
    slot_ptr,
    k_token,
    k_head,
    v_token,
    v_head,
    KV_HEADS: tl.constexpr,
    D: tl.constexpr,
):
    """One token's keys and values of one head into slot page * P + offset of the pages."""
    t, h, d = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.arange(0, D)
    place = (tl.load(slot_ptr + t).to(tl.int64) * KV_HEADS + h) * D + d
    tl.store(k_pages_ptr + place, tl.load(k_ptr + t * k_token + h * k_head + d))
    tl.store(v_pages_ptr + place, tl.load(v_ptr + t * v_token + h * v_head + d))


def paged_attention(q, k_pages, v_pages, table, lengths, scale: float, programs: int = 512, stages: int = 3):
    """Attention of one query per sequence to its first lengths[b] keys, (B, H, D). Reads nothing back to the host: the number of splits
    depends on B, K and `programs` (about how many shall run) alone.

    q (B, H, D), its last dimension contiguous; k_pages, v_pages (N, P, K, D), contiguous; table (B, M), int32; lengths (B,), int32, 0 for none (zeros come out).
    """
    (B, H, D), (_, P, K, _) = q.shape, k_pages.shape
    block, splits = min(P, 64), 1
    while splits < 64 and B * K * splits < programs:
        splits *= 2
    part = torch.empty(B, H, splits, D, dtype=torch.float32, device=q.device)
    lse = torch.empty(B, H, splits, dtype=torch.float32, device=q.device)
    out = torch.empty(B, H, D, dtype=q.dtype, device=q.device)
    rows = max(16, triton.next_power_of_2(H // K))
    shape = {"D": D, "BLOCK": block, "SPLITS": splits, "LEAST": 2 * block}
    split_kernel[(B, K, splits)](
        q, k_pages, v_pages, table, lengths, part, lse, out, scale, q.stride(0), q.stride(1), k_pages.stride(0), table.stride(0),
        KV_HEADS=K, GROUP=H // K, ROWS=rows, PAGE=P, **shape, num_warps=4, num_stages=stages,
    )  # fmt: skip
    if splits > 1:
        merge_kernel[(B, H)](part, lse, lengths, out, HEADS=H, **shape, num_warps=2)
    return out


# ------------------------------------------------------------------------------------- the three steps, GPU or not


def decode(q: Tensor, k_pages: Tensor, v_pages: Tensor, table: Tensor, lengths: Tensor, scale: float) -> Tensor:
    """flash-attn's where it is installed, else `paged_attention`, or its definition where Triton cannot run."""
    if q.is_cuda and FLASH_ATTN and q.dtype in HALF and k_pages.shape[1] % 256 == 0:
        from flash_attn import flash_attn_with_kvcache

        pages = {"cache_seqlens": lengths, "block_table": table}
        return flash_attn_with_kvcache(q[:, None], k_pages, v_pages, **pages, softmax_scale=scale, causal=True)[:, 0]
    if q.is_cuda or INTERPRETED:
        return paged_attention(q, k_pages, v_pages, table, lengths, scale)
    out = torch.zeros_like(q)
    for b, length in enumerate(lengths.tolist()):
        if length:
            pages = table[b, : -(-length // k_pages.shape[1])].long()
            k, v = (x[pages].flatten(0, 1)[:length] for x in (k_pages, v_pages))
            out[b] = _causal(q[b][None], k, v, scale)[0]
    return out


def prefill(
    q: Tensor, k: Tensor, v: Tensor, cu_q: Tensor, cu_k: Tensor, longest_q: int, longest_k: int, scale: float
) -> Tensor:
    """Causal attention inside each of the packed sequences, (T, H, D); the queries of a sequence are its last ones.

    q (T, H, D); k, v (T', K, D); cu_q, cu_k (B + 1,), int32: where sequences begin; longest: of the lengths. On a GPU in half precision;
    in fp32 one by one.
    """
    if q.is_cuda and q.dtype in HALF:
        if FLASH_ATTN:
            from flash_attn import flash_attn_varlen_func

            return flash_attn_varlen_func(q, k, v, cu_q, cu_k, longest_q, longest_k, softmax_scale=scale, causal=True)
        return torch.ops.aten._flash_attention_forward(
            q, k, v, cu_q, cu_k, longest_q, longest_k, 0.0, True, False, scale=scale
        )[0]
    sequences = zip(*(x.split(cu.diff().tolist()) for x, cu in ((q, cu_q), (k, cu_k), (v, cu_k))), strict=True)
    return torch.cat([_causal(*sequence, scale) for sequence in sequences])


def _causal(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """(t, H, D), (n, K, D), (n, K, D) -> (t, H, D): query i sees keys up to n - t + i."""
    t, n = len(q), len(k)
    mask = torch.ones(t, n, dtype=torch.bool, device=q.device).tril(n - t)
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=True)[0].transpose(0, 1)


def write(k: Tensor, v: Tensor, k_pages: Tensor, v_pages: Tensor, slots: Tensor) -> None:
    """k, v (T, K, D), their last dimension contiguous, into slots (T,) of the pages (slot = page * P + offset), in place."""
    (T, K, D) = k.shape
    if k.is_cuda or INTERPRETED:
        strides = k.stride(0), k.stride(1), v.stride(0), v.stride(1)
        write_kernel[(T, K)](k, v, k_pages, v_pages, slots, *strides, KV_HEADS=K, D=D, num_warps=1)
    else:
        k_pages.view(-1, K, D)[slots.long()] = k
        v_pages.view(-1, K, D)[slots.long()] = v


# ------------------------------------------------------------------------------------------------------ inside a model


@dataclass
class Step:
    """What every layer of one forward pass is told: where its T tokens are written (slots), and for a decode step table and lengths
    (B = T), else the packed sequences; history: slots of all keys where sequences have earlier ones in the pages."""

    slots: Tensor
    table: Tensor | None = None
    lengths: Tensor | None = None
    cu_q: Tensor | None = None
    cu_k: Tensor | None = None
    longest_q: int = 0
    longest_k: int = 0
    history: Tensor | None = None


# Set by engine.py before it runs the layers; no argument of theirs, so that a compiled layer depends on no number of a step.
current: Step | None = None


@torch.library.custom_op("drkernel::attend", mutates_args=("k_pages", "v_pages"))
def attend(q: Tensor, k: Tensor, v: Tensor, k_pages: Tensor, v_pages: Tensor, scale: float) -> Tensor:
    """q (T, H, D), k, v (T, K, D) of the `current` step -> (T, H, D); one opaque step for torch.compile."""
    step = current
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
    write(k, v, k_pages, v_pages, step.slots)
    if step.table is not None:
        return decode(q, k_pages, v_pages, step.table, step.lengths, scale)
    if step.history is not None:
        k, v = (x.view(-1, *x.shape[2:])[step.history] for x in (k_pages, v_pages))
    q, k, v = (x.contiguous() for x in (q, k, v))
    return prefill(q, k, v, step.cu_q, step.cu_k, step.longest_q, step.longest_k, scale)


@attend.register_fake
def _(q, k, v, k_pages, v_pages, scale):
    return q.new_empty(q.shape)
