"""Packed rows against rows one at a time; what layers keep; kernels against fp32 (GPU)."""

import pytest
import torch

import model
import packed
import plan
from packed import ATTENTION, INPUT, PRODUCTS, score

LENGTHS = [9, 1, 5, 7]


def small(seed: int = 3, layers: int = 2, heads: int = 4, kv_heads: int = 2):
    """A Qwen3 with grouped heads."""
    config = model._qwen3_config(64, 160, layers, heads, False)
    config.vocab_size, config.head_dim, config.num_key_value_heads = 301, 16, kv_heads
    return model._from_config(config, torch.float32, seed=seed).eval()


def some_ids(lengths, seed: int = 0):
    return torch.randint(0, 301, (sum(lengths),), generator=torch.Generator().manual_seed(seed))


def brute(policy, ids, lengths, temperature=1.0):
    """Row by row by the model's own attention, full softmax in fp64: log-probs and entropies, 0 at first tokens."""
    logp, entropy = [], []
    for row in ids.split(lengths):
        p = (policy(row[None]).logits[0, :-1].double() / temperature).log_softmax(-1)
        logp += [torch.zeros(1), p.gather(1, row[1:, None])[:, 0]]
        entropy += [torch.zeros(1), -(p.exp() * p).sum(-1)]
    return torch.cat(logp).float(), torch.cat(entropy).float()


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("pad_to", [0, 40])
def test_packed_rows_equal_rows_one_at_a_time(temperature, pad_to, monkeypatch):
    monkeypatch.setattr(packed, "LOGITS_AT_ONCE", 4 * 301)  # chunks of 4 tokens, the last one shorter
    policy, ids = small(), some_ids(LENGTHS)
    logp, entropy = score(policy, ids, LENGTHS, torch.ones(22, dtype=torch.bool), temperature, pad_to)
    expected, its_entropy = brute(policy, ids, LENGTHS, temperature)
    torch.testing.assert_close(logp, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(entropy, its_entropy, atol=1e-5, rtol=0)
    weights = torch.linspace(-1, 1, 22)
    got = torch.autograd.grad((logp * weights).sum(), list(policy.parameters()))
    want = torch.autograd.grad((expected * weights).sum(), list(policy.parameters()))
    for a, b in zip(got, want, strict=True):
        assert (a - b).norm() <= 1e-5 * b.norm() + 1e-9
    assert policy.config._attn_implementation == "sdpa"  # as it was: the same model may generate


def test_a_row_sees_nothing_of_its_neighbours():
    policy, ids = small(), some_ids(LENGTHS)
    wanted = torch.ones(22, dtype=torch.bool)
    before = score(policy, ids, LENGTHS, wanted)[0]
    changed = ids.clone()
    changed[10:15] = (changed[10:15] + 100) % 301  # the third row
    after = score(policy, changed, LENGTHS, wanted)[0]
    assert torch.equal(before[:10], after[:10]) and torch.equal(before[15:], after[15:])
    assert (before[11:15] != after[11:15]).all()


@pytest.mark.parametrize("keep", [INPUT, PRODUCTS])
def test_layers_keep_what_the_plan_says_and_compile_once(keep):
    """PRODUCTS compiled with Inductor's partitioner: gradients equal, bytes as planned, other rows make no other graph."""
    from torch._dynamo.utils import counters  # seconds that other tests need not pay

    policy, twin, tokens = small(layers=3), small(layers=3), 64
    torch._dynamo.reset()
    packed.recompute(policy, [keep] * 3, compiled=False)
    if keep == PRODUCTS:
        for layer in policy.model.layers:
            layer.forward = torch.compile(layer.forward, backend="aot_eager_decomp_partition", fullgraph=True)

    def gradients(policy, lengths):
        kept = {}

        def pack(x):
            kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            logp, _ = score(policy, some_ids(lengths), lengths, torch.arange(sum(lengths)) > 3, 1.0, tokens)
        grads = torch.autograd.grad(logp.square().sum(), list(policy.parameters()))
        held = {p.untyped_storage().data_ptr() for p in policy.parameters()}
        return grads, sum(size for pointer, size in kept.items() if pointer not in held)

    graphs = []
    for lengths in ([30, 20, 14], [50, 9], [10] * 6, [64]):
        (got, kept), (want, _) = gradients(policy, lengths), gradients(twin, lengths)
        for a, b in zip(got, want, strict=True):
            assert (a - b).norm() <= 1e-5 * b.norm()
        graphs.append(counters["stats"]["unique_graphs"])
    assert (
        graphs[1:] == [graphs[1]] * 3
    )  # the second batch makes the number of rows a variable (on a GPU it is one at once)
    shape = plan.shape_of(policy.config)
    policy.config.num_hidden_layers, policy.model.layers = 2, policy.model.layers[:2]
    assert kept - gradients(policy, [64])[1] == tokens * shape.kept(keep, c=4)


def test_levels_by_hand():
    counts = [plan.shape_of(small().config).kept(level, 2) for level in (INPUT, ATTENTION, PRODUCTS)]
    assert counts == [2 * 64, 2 * 128 + 16, 2 * (128 + 64 + 64 + 64 + 320) + 16]


def test_other_attention_is_refused():
    with pytest.raises(NotImplementedError, match="windows"):
        q = torch.zeros(1, 4, 3, 16)
        packed.packed_attention(None, q, q, q, None, 1.0, sliding_window=8, cu=torch.tensor([0, 3]), how=None)


# --- On a GPU


def reference(q, k, v, cu, scale):
    """Row by row, fp32, scores in full."""
    out = torch.zeros(q.shape, device=q.device)
    for start, end in zip(cu[:-1].tolist(), cu[1:].tolist(), strict=True):
        q_, k_, v_ = (x[start:end].float().transpose(0, 1) for x in (q, k, v))
        k_, v_ = (x.repeat_interleave(q.shape[1] // k.shape[1], 0) for x in (k_, v_))
        scores = (q_ @ k_.transpose(1, 2) * scale).masked_fill(
            torch.ones(end - start, end - start, device=q.device).triu(1).bool(), -torch.inf
        )
        out[start:end] = (scores.softmax(-1) @ v_).transpose(0, 1)
    return out


@pytest.mark.parametrize("device,dtype", [("cpu", "float32"), pytest.param("cuda", "bfloat16", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    "starts,longest", [([0, 1, 301, 371], 512), ([0, 1, 301, 371], 0), ([0, 128, 256, 384], 128), ([0, 200, 400], 200)]
)
def test_attention_and_its_gradients(device, dtype, starts, longest):
    """Both kernels (the CPU has one; longest 0: not on the grid): rows of 1, 300 and 70 tokens and 29 of no row; rows that fill the grid,
    16 tokens of no row; rows that fill all."""
    if device == "cpu" and not longest:
        pytest.skip("flash attention over rows of any lengths needs a GPU")
    torch.manual_seed(0)
    cu = torch.tensor(starts, dtype=torch.int32, device=device)
    how = torch.tensor([longest or 300, longest > 0, starts[-1]])
    make = lambda heads: torch.randn(400, heads, 64, device=device, dtype=getattr(torch, dtype), requires_grad=True)  # noqa: E731
    q, k, v = make(8), make(2), make(2)
    out = packed.attention(q, k, v, cu, how, 0.125)[0]
    grad = torch.randn_like(out)
    given = grad.clone()
    got = [out, *torch.autograd.grad(out, (q, k, v), grad)]
    expected = reference(q, k, v, cu, 0.125)
    want = [expected, *torch.autograd.grad(expected, (q, k, v), grad.float())]
    for a, b in zip(got, want, strict=True):
        assert (a[starts[-1] :] == 0).all() and a.isfinite().all() and a.is_contiguous()
        assert (a.float() - b.float()).norm() < (1e-5 if dtype == "float32" else 1e-2) * b.float().norm()
    assert torch.equal(grad, given)


@pytest.mark.gpu
def test_compiled_half_precision_scores_are_near_fp32():
    lengths = [700, 30, 260]
    policy, twin = small(layers=4).cuda(), small(layers=4).cuda().bfloat16()
    twin.model.rotary_emb.inv_freq = policy.model.rotary_emb.inv_freq
    packed.recompute(twin, [INPUT, ATTENTION, PRODUCTS, PRODUCTS], compiled=True)
    ids, wanted = some_ids(lengths).cuda(), torch.ones(sum(lengths), dtype=torch.bool, device="cuda")
    logp, entropy = score(twin, ids, lengths, wanted, pad_to=1024)
    expected, its_entropy = brute(policy.cpu(), ids.cpu(), lengths)
    assert (logp.cpu() - expected).abs().max() < 0.1 and (entropy.cpu() - its_entropy).abs().max() < 0.05
    got = torch.autograd.grad(logp.sum(), list(twin.parameters()))
    want = torch.autograd.grad(expected.sum(), list(policy.parameters()))
    for a, b in zip(got, want, strict=True):
        assert (a.float().cpu() - b).norm() < 0.05 * b.norm()
