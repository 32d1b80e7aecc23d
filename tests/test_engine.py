"""The engine on the CPU, without graphs: the same schedule, pages, sampling and stopping. What only a GPU has is marked gpu."""

import copy
from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config, Qwen3ForCausalLM

import engine
from engine import Engine, Request
from generation import generate
from model import ModelError, token_logprobs

PAD, STOPS = 0, {6, 11}


def qwen(heads=4, kv_heads=2, layers=2, d=16, vocab=40, dtype=torch.float32):
    """A small random Qwen3; its answers are no constant: the weights are wide."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        config = Qwen3Config(
            vocab_size=vocab,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=d,
            max_position_embeddings=512,
            initializer_range=0.4,
            tie_word_embeddings=False,
        )
        return Qwen3ForCausalLM._from_config(config, dtype=dtype, attn_implementation="sdpa").eval()


@pytest.fixture(scope="module")
def model():
    return qwen()


def prompt(n, seed=0):
    g = torch.Generator().manual_seed(100 * n + seed)
    return torch.randint(8, 40, (n,), generator=g).tolist()


def run(model, requests, seed=0, **settings):
    settings = {"slots": 4, "context": 128, "stop_ids": STOPS, "page": 16} | settings
    with Engine(model, **settings) as engine:
        engine.generate(requests, seed)
    return engine


def plain(model, prompts, limits, temperature=0.0):
    requests = [Request(ids, limit) for ids, limit in zip(prompts, limits, strict=True)]
    how = {"stop_ids": STOPS, "pad_id": PAD, "temperature": temperature, "top_p": 1.0, "seed": 0}
    generate(model, requests, **how)
    return [(r.new, r.logp) for r in requests]


LENGTHS, LIMITS = [1, 2, 16, 17, 33, 40, 5, 16], [20, 33, 1, 16, 15, 40, 3, 17]  # around page ends; more than slots


def test_greedy_answers_are_those_of_hugging_face_generate(model):
    """Ragged prompts, two rounds of slots, limits of each; stop tokens where they come."""
    prompts = [prompt(n) for n in LENGTHS]
    requests = [Request(p, limit) for p, limit in zip(prompts, LIMITS, strict=True)]
    engine = run(model, requests, temperature=0.0)
    expected = plain(model, prompts, LIMITS)
    assert [r.new for r in requests] == [ids for ids, _ in expected]
    for r, (_, logp) in zip(requests, expected, strict=True):
        torch.testing.assert_close(torch.tensor(r.logp), torch.tensor(logp), atol=1e-4, rtol=0)
    assert any(r.new[-1] in STOPS for r in requests) and any(STOPS.isdisjoint(r.new) for r in requests)
    assert engine.counts["sampled"] == sum(len(r.new) for r in requests)
    assert model.config._attn_implementation == "sdpa"


FAMILIES = {
    "llama, biases everywhere": (LlamaConfig, {"attention_bias": True, "mlp_bias": True}),
    "qwen2, biases of q, k and v": (Qwen2Config, {}),
    "qwen3": (Qwen3Config, {}),
    "yarn, whose rotations are scaled": (
        Qwen3Config,
        {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 64}},
    ),
}  # fmt: skip


def of_family(name):
    config, special = FAMILIES[name]
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 40}
    sizes |= {
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "initializer_range": 0.4,
        "tie_word_embeddings": False,
    }
    torch.manual_seed(2)
    model = AutoModelForCausalLM.from_config(config(**sizes, **special), attn_implementation="sdpa").eval()
    for p in model.parameters():  # biases begin as zeros, norms as ones
        torch.nn.init.normal_(p, 0.0 if p.dim() > 1 else 1.0, 0.4)
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_of_every_family_are_hugging_face_s(family):
    """Before and after the weights change in place, which are laid side by side once."""
    model = of_family(family)
    assert engine.supports(model)
    prompts, limits, places = [prompt(n) for n in (1, 17, 30)], [20, 20, 20], []
    for _ in range(2):
        requests = [Request(p, limit) for p, limit in zip(prompts, limits)]
        run(model, requests, temperature=0.0)
        for r, (ids, logp) in zip(requests, plain(model, prompts, limits), strict=True):
            assert r.new == ids
            torch.testing.assert_close(torch.tensor(r.logp), torch.tensor(logp), atol=1e-4, rtol=0)
        assert len({token for r in requests for token in r.new}) > 3
        places.append([p.data_ptr() for p in model.parameters()])
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(0.9).add_(0.01)
    assert places[0] == places[1]
    a = model.base_model.layers[0].self_attn
    assert a.v_proj.weight.data_ptr() == a.q_proj.weight.data_ptr() + a.q_proj.weight.nbytes + a.k_proj.weight.nbytes


def test_maps_are_joined_in_place_where_they_lie_side_by_side():
    a, b = torch.nn.Linear(3, 2), torch.nn.Linear(3, 4)
    x, before = torch.randn(5, 3), [[*map(torch.clone, m.parameters())] for m in (a, b)]
    weight, bias = engine.joined(a, b)
    expected = torch.cat([a(x), b(x)], 1)
    torch.testing.assert_close(torch.nn.functional.linear(x, weight, bias), expected)
    assert [[*map(torch.equal, m.parameters(), old)] for m, old in zip((a, b), before)] == [[True, True]] * 2
    assert engine.joined(a, b)[0].data_ptr() == weight.data_ptr() == a.weight.data_ptr()
    other = engine.joined(b, a)  # in another order they lie elsewhere
    assert other[0].data_ptr() != weight.data_ptr() and torch.equal(other[0], torch.cat([b.weight, a.weight]))
    assert engine.joined(a)[0].shape == (2, 3)


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 0.8)])
@pytest.mark.parametrize("heads", [(4, 4), (4, 1)])
def test_sampled_logprobs_equal_a_plain_forward(temperature, top_p, heads):
    model = qwen(*heads)
    requests = [Request(prompt(n), limit) for n, limit in zip(LENGTHS, LIMITS, strict=True)]
    run(model, requests, temperature=temperature, top_p=top_p)
    for r in requests:
        row = torch.tensor([r.ids + r.new])
        scored = token_logprobs(model, row, torch.ones_like(row), temperature)[0, len(r.ids) :]
        torch.testing.assert_close(torch.tensor(r.logp), scored, atol=1e-4, rtol=0)


def test_samples_follow_the_policy():
    """χ² of 1,000 one-token answers, the prompt shared by all, and of the nucleus for top-p."""
    model, n = qwen(vocab=12), 1000
    ids = [3, 5, 9, 2]
    with torch.no_grad():
        p = model(torch.tensor([ids])).logits[0, -1].double().softmax(-1)
    order = p.argsort(descending=True)
    nucleus = order[: int((p[order].cumsum(0) < 0.8).sum()) + 1]
    kept = torch.zeros_like(p).index_copy_(0, nucleus, p[nucleus])
    for top_p, expected in ((1.0, p), (0.8, kept / kept.sum())):
        requests = [Request(ids, 1) for _ in range(n)]
        engine = run(model, requests, slots=500, context=5, top_p=top_p, stop_ids=set())
        assert engine.counts["prefilled"] == 3
        seen = torch.bincount(torch.tensor([r.new[0] for r in requests]), minlength=12).double()
        assert not seen[expected == 0].any()
        likely = expected * n >= 5
        chi2 = ((seen - n * expected) ** 2 / (n * expected))[likely].sum()
        assert chi2 < 40  # 11 degrees of freedom: p = 3e-5


@pytest.mark.parametrize("top_p", [0.05, 0.5, 0.9, 0.999])
def test_the_nucleus_is_that_of_a_sort(top_p):
    """Which tokens can come: with the noise at its largest for one token after the other."""
    logits = 3 * torch.randn(2, 50, generator=torch.Generator().manual_seed(0))
    p = logits.double().softmax(-1)
    for row in range(2):
        order = p[row].argsort(descending=True)
        nucleus = set(order[: int((p[row][order].cumsum(0) < top_p).sum()) + 1].tolist())
        for token in range(50):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    torch.Tensor,
                    "exponential_",
                    lambda x, generator, t=token: x.fill_(1).index_fill_(1, torch.tensor([t]), 0),
                )
                new, _ = engine.sample(logits[row : row + 1], torch.tensor(1.0), torch.tensor(1.0), top_p, None)
            assert (new.item() == token) == (token in nucleus)


@pytest.mark.parametrize("n", [1, 16, 20])
def test_a_prompt_is_computed_once_for_its_samples(model, n):
    """Seven samples in four slots, one of them with another limit; the same tokens as each alone."""
    requests = [Request(prompt(n), 9 + 4 * (i == 2)) for i in range(7)] + [Request(prompt(n, seed=1), 9)]
    engine = run(model, requests, temperature=0.0)
    assert engine.counts["prefilled"] == 2 * (n - 1)
    alone = [Request(prompt(n), 13), Request(prompt(n, seed=1), 9)]
    for request in alone:
        run(model, [request], temperature=0.0)
    for i, r in enumerate(requests):
        assert r.new == alone[i == 7].new[: r.limit]
    with Engine(model, slots=8, context=128, stop_ids=STOPS, page=16) as engine:
        samples = [Request(prompt(n), 12) for _ in range(6)]
        engine.generate(samples, seed=3)
    assert len({tuple(r.new) for r in samples}) > 1
    for r in samples:
        row = torch.tensor([r.ids + r.new])
        scored = token_logprobs(model, row, torch.ones_like(row))[0, n:]
        torch.testing.assert_close(torch.tensor(r.logp), scored, atol=1e-4, rtol=0)


def test_too_few_pages_only_cost_time(model):
    """Sequences are put back and computed again: the greedy answers do not change, no page is lost."""
    requests = [Request(prompt(20 + n), 60) for n in range(4)]
    free = [Request(r.ids, r.limit) for r in requests]
    run(model, free, temperature=0.0, stop_ids=set())
    engine = run(model, requests, temperature=0.0, stop_ids=set(), pages=10)
    assert engine.counts["put back"] > 0
    assert [r.new for r in requests] == [r.new for r in free]
    assert sorted(engine.free) == list(range(1, 10)) and not any(engine.references)


def test_the_next_turn_finds_what_the_last_one_computed(model):
    turns = {}
    for pages in (None, 12):  # all is kept; hardly anything is
        with Engine(model, slots=4, context=128, stop_ids=STOPS, page=16, temperature=0.0, pages=pages) as engine:
            first = [Request(prompt(30), 20, key=g) for g in range(3)] + [Request(prompt(9), 20, key=3)]
            engine.generate(first, seed=0)
            counts = dict(engine.counts)
            second = [Request(r.ids + r.new + prompt(11, seed=1), 12, key=r.key) for r in first]
            engine.generate(second, seed=0)
            turns[pages] = [r.new for r in first + second]
            prefilled = engine.counts["prefilled"] - counts["prefilled"]
        kept = Counter(page for _, mine in engine.kept.values() for page in mine)
        assert sorted([*engine.free, *kept]) == list(range(1, len(engine.references)))
        assert all(n == kept[page] for page, n in enumerate(engine.references))
        assert not engine.shared and not engine.coming
        new = sum(len(r.ids) - 1 - (len(f.ids) + len(f.new) - 1) for f, r in zip(first, second, strict=True))
        assert prefilled == new if pages is None else prefilled > new
    assert (
        turns[None]
        == turns[12]
        == [ids for ids, _ in plain(model, [r.ids for r in first + second], [20] * 4 + [12] * 4)]
    )


def test_requests_that_come_while_others_run(model):
    """Each finished first turn submits its second; the engine waits, idle, for the one that is late."""
    late, second = [Request(prompt(8), 6)], {}
    with Engine(model, slots=2, context=128, stop_ids=STOPS, page=16, temperature=0.0) as engine:
        first = [Request(prompt(n), 10, key=n) for n in (5, 6, 7)]
        for request in first:
            engine.submit(request)
        waited, order = 0, []
        for request in engine.stream(more=lambda: bool(late)):
            if request is None:
                if engine.idle():
                    waited += 1
                    engine.submit(late.pop())
            else:
                order.append(request)
                if request in first:
                    second[request.key] = Request(request.ids + request.new + prompt(3), 5, key=request.key)
                    engine.submit(second[request.key])
    assert waited == 1 and len(order) == 7
    expected = plain(model, [r.ids for r in order], [r.limit for r in order])
    assert [r.new for r in order] == [ids for ids, _ in expected]


def test_few_left_run_in_fewer_slots(model, monkeypatch):
    steps = []
    decode = Engine._decode
    monkeypatch.setattr(Engine, "_decode", lambda self, B: (steps.append(B), decode(self, B)))
    requests = [Request(prompt(n), 24 if n in (8, 9) else 4) for n in range(2, 34)]
    run(model, requests, slots=32, temperature=0.0, stop_ids=set())
    assert set(steps) == {32, 8}
    expected = [Request(r.ids, r.limit) for r in requests]
    run(model, expected, slots=4, temperature=0.0, stop_ids=set())
    assert [r.new for r in requests] == [r.new for r in expected]


def test_draws_depend_on_the_seed_alone(model):
    def draw(seed):
        requests = [Request(prompt(6), 12) for _ in range(3)]
        run(model, requests, seed)
        return [r.new for r in requests]

    torch.manual_seed(5)
    state = torch.get_rng_state()
    assert draw(1) == draw(1) != draw(2)
    assert torch.get_rng_state().equal(state)


def test_new_weights_are_seen_in_place(model):
    mine = copy.deepcopy(model)
    before, after = Request(prompt(12), 20), Request(prompt(12), 20)
    with Engine(mine, slots=1, context=64, stop_ids=set(), page=16, temperature=0.0) as engine:
        engine.generate([before], 0)
        with torch.no_grad():
            for p in mine.parameters():
                p.mul_(1.5)
        engine.generate([after], 0)
    assert before.new != after.new
    fresh = Request(after.ids, 20)
    run(mine, [fresh], temperature=0.0, stop_ids=set())
    assert after.new == fresh.new


def test_what_can_never_run_is_refused(model):
    with Engine(model, slots=2, context=40, stop_ids=set(), page=16, pages=4) as engine:
        for bad in (Request([], 3), Request([9], 0), Request([9] * 30, 11), Request([9] * 20, 13)):
            with pytest.raises(ModelError, match="do not fit: the context is 40, the cache 32 tokens"):
                engine.submit(bad)
        engine.submit(Request([9] * 20, 12))


@pytest.mark.parametrize("top_p", [1.0, 0.9])
def test_a_decode_step_reads_nothing_back(model, monkeypatch, top_p):
    """What a CUDA graph cannot hold: numbers that the host reads, sizes that depend on values. (The kernels' twins do; left out.)"""

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            names.add(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    names = set()
    monkeypatch.setattr(engine.attention, "decode", lambda q, *_: q * 1)
    with Engine(model, slots=4, context=64, stop_ids=STOPS, page=16, top_p=top_p) as running, Recorder():
        running._decode(4)
    assert {"exponential_", "index_copy_", "argmax"} < names
    assert names.isdisjoint({"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "is_nonzero", "equal"})


def test_all_layers_share_one_compiled_graph(monkeypatch):
    """No graph break at the paged attention, and no number of a layer or a step that a graph would depend on."""
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    layer = torch.compile(engine._layer, backend=backend, fullgraph=True)
    monkeypatch.setattr(engine, "_compiled_layer", lambda: layer)
    answers = []
    for compiled in (True, False):
        requests = [Request(prompt(n), 9) for n in (9, 30, 5)]
        run(qwen(layers=4), requests, temperature=0.0, stop_ids=set(), compiled=compiled)
        answers.append([r.new for r in requests])
    assert answers[0] == answers[1]
    assert len(graphs) <= 2  # the second for any number of tokens


@pytest.mark.gpu
def test_a_gpu_answers_as_the_cpu_does():
    """Graphs, compiled layers and the Triton kernels in fp32, greedy; then log-probs in bf16 against a plain forward."""
    requests = {}
    for device in ("cpu", "cuda"):
        model = qwen(heads=8, kv_heads=4, layers=3, d=32).to(device)
        requests[device] = [Request(prompt(n), limit) for n, limit in zip(LENGTHS * 8, LIMITS * 8, strict=True)]
        engine = run(model, requests[device], temperature=0.0, slots=32)
    assert engine.counts["graphs"] >= 1
    assert [r.new for r in requests["cuda"]] == [r.new for r in requests["cpu"]]
    model = qwen(heads=8, kv_heads=4, layers=3, d=64, dtype=torch.bfloat16).to("cuda")
    samples = [Request(prompt(n), 40, key=(n, g)) for n in (30, 64, 65) for g in range(16)]
    with Engine(model, slots=32, context=256, stop_ids=STOPS) as engine:
        engine.generate(samples, seed=1)
        again = [Request(r.ids + r.new + prompt(20), 40, key=r.key) for r in samples]
        engine.generate(again, seed=2)
    for r in samples + again:
        row = torch.tensor([r.ids + r.new], device="cuda")
        scored = token_logprobs(model, row, torch.ones_like(row))[0, len(r.ids) :].cpu()
        assert (torch.tensor(r.logp) - scored).abs().mean() < 0.05
