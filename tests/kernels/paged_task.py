import torch
import torch.nn as nn


class Model(nn.Module):
    """Decode attention over a paged cache: each of B queries sees the first `lengths` keys of its sequence."""

    def forward(self, q, k_pages, v_pages, table, lengths):
        (B, H, D), K, longest = q.shape, k_pages.shape[2], table.shape[1] * k_pages.shape[1]
        k, v = (x[table.long()].reshape(B, longest, K, D).repeat_interleave(H // K, dim=2) for x in (k_pages, v_pages))
        score = torch.einsum("bhd,bnhd->bhn", q, k) * D**-0.5
        beyond = torch.arange(longest, device=q.device) >= lengths[:, None]
        p = score.float().masked_fill(beyond[:, None], float("-inf")).softmax(-1)
        return torch.einsum("bhn,bnhd->bhd", p.to(v.dtype), v)


SIZES = {
    "cpu": (3, 4, 2, 16, 16, 4),
    "cuda": (64, 16, 8, 128, 64, 16),
}  # sequences, heads, key-value heads, D, page, pages of each


def get_inputs():
    device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
    B, H, K, D, P, M = SIZES[device]
    table = torch.randperm(B * M).view(B, M).int()
    lengths = torch.randint(P, M * P + 1, (B,), dtype=torch.int32)
    pages = B * M, P, K, D
    return [2 * torch.randn(B, H, D, dtype=dtype), *(torch.randn(pages, dtype=dtype) for _ in "kv"), table, lengths]


def get_init_inputs():
    return []
