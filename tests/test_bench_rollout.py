"""The rollout benchmark: its floors by hand, the pair that Hugging Face's continuous batching takes, and that it runs."""

import re

import pytest
import torch
from test_attention import brute, paged
from test_engine import qwen

import bench_rollout
from bench_rollout import Rollout, print_gaps, with_kvcache


@pytest.fixture
def one():
    """hidden 32, 48 inside, 2 layers, 4 heads of 16 over 2 of keys and values, 40 words, fp32; 1 kB/s, 1e-9 TFLOP/s."""
    bench = Rollout(peak=1e-9)
    bench.policy, bench.bandwidth = qwen(), 1000.0
    return bench


def test_floors_by_hand(one):
    q, k, v, o, gate, up, down = 32 * 64, 32 * 32, 32 * 32, 64 * 32, 32 * 48, 32 * 48, 48 * 32
    matrices = q + k + v + o + gate + up + down
    weights = 4 * (2 * (matrices + 2 * 16 + 2 * 32) + 40 * 32)  # norms of heads and of layers; the output matrix
    cache = 2 * 2 * 2 * 16 * 4  # keys and values, layers, heads, D, bytes
    assert bench_rollout.key_value_bytes(one.policy) == cache
    assert one.decode_floor(3, 10, 20) == pytest.approx((weights + 3 * 15 * cache) / 1000)
    pairs = 10 * 10 / 2  # of a query and a key, causal
    attention = 2 * 4 * pairs * 2 * 2 * 16  # layers, heads; two products of 2 D FLOPs
    assert one.prefill_flops([10, 10]) == 2 * (2 * 2 * matrices * 10 + attention)


def test_gaps_are_where_nothing_runs(capsys):
    print_gaps([(0, 100, "a"), (20, 50, "b"), (115, 130, "c"), (135, 150, "d"), (190, 200, "e")])
    out = capsys.readouterr().out
    assert "idle: 0.06 of 0.20 ms (27.5%) in 2 gaps of 10 us or more" in out
    gaps = re.findall(r"(\d+) us  after (\w)\s+before (\w)", out)
    assert gaps == [("40", "d", "e"), ("15", "a", "c")]


def test_the_pair_for_continuous_batching_equals_brute_force():
    """The last token of each sequence is new; a fifth row pads the batch and must change nothing that is read."""
    lengths, page, scale = [37, 33, 1, 16], 16, 0.25
    q, k_pages, v_pages, table, n, sequences = paged(lengths, page, 4, 2, 16)
    new = [torch.stack([s[i][length - 1] for s, length in zip(sequences, lengths, strict=True)]) for i in (0, 1)]
    for b, length in enumerate(lengths):
        where = table[b, (length - 1) // page], (length - 1) % page
        k_pages[where] = v_pages[where] = torch.nan
    pad = lambda x, value: torch.cat([x, torch.full_like(x[:1], value)])  # noqa: E731
    k_pages, v_pages = (
        torch.cat([x, torch.zeros(1, *x.shape[1:])]) for x in (k_pages, v_pages)
    )  # the last page is trash
    table[table == 0] = -1
    q, (k, v) = pad(q, 9.0)[:, None], (pad(x, 9.0)[:, None] for x in new)
    out = with_kvcache(q, k_pages, v_pages, k, v, pad(n - 1, -1), scale, True, (-1, -1), pad(table, -1))
    assert out.shape == (5, 1, 4, 16)
    for b in range(4):
        torch.testing.assert_close(out[b, 0].double(), brute(q[b, 0], *sequences[b], scale), atol=1e-5, rtol=1e-5)


def test_it_runs(capsys, monkeypatch):
    monkeypatch.setattr(bench_rollout, "PREFILL", 60)
    Rollout(model="tiny", device="cpu", sequences=4, prompt=20, new=10, samples=2, check=40).run()
    out = capsys.readouterr().out
    kept = re.search(r"log-probs over 40 tokens: .* ratio 1\.0000.*; MRS keeps (\d)/(\d) rollouts of 10 tokens", out)
    assert kept and kept[1] == kept[2] == "4"
    assert (
        re.search(r"3 turns, 2 prompts x 2: \d+ tokens", out)
        and "decode, 4 x (20 + 10)" in out
        and "prefill, 3 x 20" in out
    )
