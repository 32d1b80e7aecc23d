"""Loading, scoring, sharding and saving of the policy."""

import contextlib
import json
import math
import os
import socket
from dataclasses import dataclass

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from transformers import AutoModelForCausalLM, AutoTokenizer

import model
import packed
from model import ModelError, load_policy, preset_of, resolve, save_policy, tiny_policy, token_logprobs
from weights import refresh, shard

TEXTS = ["user\nx = x * 2.5\n    x = tl.abs(x)\nrows = 37\n", "assistant\n```python\nx = x * 2.5\n```"] * 5


@pytest.fixture(scope="module")
def tiny():
    return tiny_policy(TEXTS, vocab_size=400)


def brute_logprobs(policy, ids, temperature=1.0):
    """One row without padding, one prefix at a time."""
    out = [0.0]
    for t in range(1, len(ids)):
        logits = policy(input_ids=torch.tensor([ids[:t]])).logits[0, -1].double() / temperature
        out.append((logits[ids[t]] - logits.exp().sum().log()).item())
    return out


def ragged(tiny, left=False):
    """Three rows of lengths 9, 1 and 5 with the pad id also as a real token, padded on one side."""
    rows = [[5, 0, 7, 8, 0, 9, 30, 2, 0], [4], [0, 0, 11, 12, 2]]
    fill = [[9] * (9 - len(r)) for r in rows]
    ids = torch.tensor([f + r if left else r + f for r, f in zip(rows, fill, strict=True)])
    real = [[1] * len(r) for r in rows]
    none = [[0] * len(f) for f in fill]
    return rows, ids, torch.tensor([n + r if left else r + n for r, n in zip(real, none, strict=True)])


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_token_logprobs_equal_brute_force(tiny, left, temperature):
    rows, ids, mask = ragged(tiny, left)
    scored = token_logprobs(tiny[0], ids, mask, temperature)
    assert (scored[mask == 0] == 0).all()
    for row, got, real in zip(rows, scored, mask.bool(), strict=True):
        torch.testing.assert_close(
            got[real], torch.tensor(brute_logprobs(tiny[0], row, temperature)), atol=1e-5, rtol=0
        )


def test_chunked_scores_and_gradients_equal_those_at_once(tiny, monkeypatch):
    policy, _ = tiny
    _, ids, mask = ragged(tiny)
    results = []
    for at_once in (packed.LOGITS_AT_ONCE, 3 * policy.config.vocab_size):
        monkeypatch.setattr(packed, "LOGITS_AT_ONCE", at_once)
        policy.zero_grad()
        scored = token_logprobs(policy, ids, mask)
        scored.mean().backward()
        results.append((scored.detach(), [p.grad.clone() for p in policy.parameters()]))
    policy.zero_grad()
    torch.testing.assert_close(results[0], results[1], atol=1e-5, rtol=1e-5)


def test_only_wanted_tokens_are_scored(tiny):
    _, ids, mask = ragged(tiny)
    wanted = torch.zeros_like(mask)
    wanted[0, [0, 4, 8]] = 1  # 0 has no prefix
    wanted[1, 3] = 1  # padding
    everything, some = token_logprobs(tiny[0], ids, mask), token_logprobs(tiny[0], ids, mask, wanted=wanted)
    expected = torch.zeros_like(everything)
    expected[0, [4, 8]] = everything[0, [4, 8]]
    torch.testing.assert_close(some, expected)
    token_logprobs(tiny[0], ids, mask, wanted=torch.zeros_like(mask)).sum().backward()  # no token at all


TRICKY = [
    "x = x * 2.5\n    x = tl.abs(x)\n",
    "tabs\t\r\nwindows\r\n\n\n   trailing  ",
    "numbers 0 00 1234567 1e-5 x1 3x 2.5.7 -8",
    "é ü 漢字 \U0001f680 \u200d \x00 \x7f ﷽",
    "<|im_end|> <|im_start|>user <|endoftext|>",
    "",
]


@pytest.mark.parametrize("text", TRICKY)
@pytest.mark.parametrize("trained", [True, False])
def test_any_text_can_be_spelled(tiny, text, trained):
    tokenizer = tiny[1] if trained else model.train_tokenizer([], 0)
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids
    assert tokenizer.decode(ids) == text
    assert not {tokenizer.pad_token_id, tokenizer.eos_token_id} & set(ids)


def test_a_repeated_line_is_one_token_and_numbers_stand_apart(tiny):
    tokenizer = tiny[1]
    words = [tokenizer.decode([i]) for i in tokenizer("\nx = x * 2.5\n    x = tl.abs(x)\nrows = 37").input_ids]
    assert words[:3] == ["\nx = x * 2.5", "\n    x = tl.abs(x)", "\nrows = "]


def test_tiny_policy_is_deterministic_and_leaves_the_generator_alone(tiny):
    torch.manual_seed(5)
    again, tokenizer = tiny_policy(TEXTS, vocab_size=400)
    after = torch.rand(1)
    torch.manual_seed(5)
    assert after == torch.rand(1)
    assert tokenizer.get_vocab() == tiny[1].get_vocab()
    assert all(torch.equal(p, q) for p, q in zip(again.parameters(), tiny[0].parameters(), strict=True))
    other, _ = tiny_policy(TEXTS, vocab_size=400, seed=1)
    assert not torch.equal(other.lm_head.weight, again.lm_head.weight)


def test_saved_policy_loads_with_plain_transformers(tiny, tmp_path):
    policy, tokenizer = tiny
    folder = tmp_path / "policy"
    for _ in range(2):  # the second time over the first
        save_policy(policy, tokenizer, folder)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["policy"]
    loaded = AutoModelForCausalLM.from_pretrained(folder)
    assert all(torch.equal(p, q) for p, q in zip(policy.parameters(), loaded.parameters(), strict=True))
    plain = AutoTokenizer.from_pretrained(folder)
    assert plain("x = x * 2.5\n").input_ids == tokenizer("x = x * 2.5\n").input_ids
    assert (plain.eos_token, plain.pad_token) == ("<|im_end|>", "<|endoftext|>")
    assert preset_of(str(folder)) == "tiny"
    ours, _ = load_policy(str(folder), "cpu")
    assert not ours.training and ours.dtype == torch.float32


def test_an_interrupted_save_leaves_the_old_folder(tiny, tmp_path, monkeypatch):
    folder = tmp_path / "policy"
    save_policy(*tiny, folder)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(tiny[1]), "save_pretrained", full)
    with pytest.raises(OSError, match="No space"):
        save_policy(*tiny, folder)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["policy"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("qwen", "Unknown model 'qwen'.*qwen-0.6b"),
        ("/no/such/folder", "Unknown model"),
        ("/nonexistent", "Unknown model"),
        ("tiny", "python sft.py"),
        ("{tmp}", "no config.json"),
        ("{tmp}/broken", "cannot be loaded"),
        ("nobody/nothing", "hf download nobody/nothing"),
    ],
)
def test_models_that_cannot_be_had(name, says, tmp_path, monkeypatch):
    monkeypatch.setattr(model, "TINY_FOLDER", tmp_path / "tiny")

    def no_network(*_, **__):
        raise OSError("Name or service not known")

    monkeypatch.setattr(model.huggingface_hub, "model_info", no_network)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text('{"model_type": "qwen3"}')
    with pytest.raises(ModelError, match=says) as error:
        load_policy(name.format(tmp=tmp_path), "cpu")
    assert "\n" not in str(error.value)


def test_random_init_takes_the_shape_of_the_model(tmp_path, monkeypatch):
    monkeypatch.setitem(model.QWEN3, "0.6b", (64, 96, 2, 8, True))
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda *_, **__: (_ for _ in ()).throw(OSError("not cached")))
    policy, tokenizer = load_policy("qwen-0.6b", "cpu", random_init=True)
    assert policy.lm_head.weight is policy.model.embed_tokens.weight
    layer = 2 * 64 * 8 * 128 * 2 + 3 * 64 * 96 + 2 * 64 + 2 * 128  # q and o, k and v (8 heads each); MLP; norms
    assert model.parameter_count(policy) == 151_936 * 64 + 2 * layer + 64
    assert tokenizer.decode(tokenizer("é\n").input_ids + [150_000]) == "é\n"
    with pytest.raises(ModelError, match="random-init knows"):
        load_policy("nobody/nothing", "cpu", random_init=True)


def test_resolve_fills_only_what_is_none():
    @dataclass
    class Args:
        turns: int | None = None
        samples: int | None = 3
        unknown: int | None = None

    assert resolve(Args(), "tiny") == Args(model.PRESETS["tiny"]["turns"], 3, None)
    assert preset_of("tiny") == "tiny" and preset_of("qwen-8b") == "paper"


def small(tied):
    """A Qwen3 of four layers whose sizes divide unevenly over two ranks."""
    config = model._qwen3_config(36, 50, 4, 8, tied)
    config.vocab_size, config.head_dim, config.num_key_value_heads = 301, 6, 4
    return model._from_config(config, torch.float32, seed=3)


def sharded_worker(rank, port, folder):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    try:
        for tied in (True, False):
            policy = shard(
                small(tied), torch.float32, keep=[packed.INPUT, packed.ATTENTION, packed.PRODUCTS, packed.INPUT]
            )
            assert policy.lm_head.weight.to_local().numel() < policy.lm_head.weight.numel()
            _, ids, mask = ragged(None)
            rows = slice(0, 2) if rank == 0 else slice(2, 3)
            scored = token_logprobs(policy, ids[rows], mask[rows])
            (scored.sum() * 2).backward()  # the ranks' gradients are averaged
            grads = {name: p.grad.full_tensor() for name, p in policy.named_parameters()}
            sampler = small(tied)
            for p in sampler.parameters():
                p.data.zero_()
            refresh(sampler, policy)
            save_policy(policy, model.train_tokenizer([], 0), folder / f"saved {tied}")
            torch.save((scored.detach(), grads, sampler.state_dict()), folder / f"{tied} {rank}")
    finally:
        dist.destroy_process_group()


def test_two_ranks_equal_one(tmp_path):
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.start_processes(sharded_worker, (port, tmp_path), nprocs=2, start_method="forkserver")  # see ranks.py
    for tied in (True, False):
        outcomes = [torch.load(tmp_path / f"{tied} {rank}") for rank in (0, 1)]
        policy = small(tied)
        _, ids, mask = ragged(None)
        scored = token_logprobs(policy, ids, mask)
        scored.sum().backward()
        torch.testing.assert_close(torch.cat([o[0] for o in outcomes]), scored.detach(), atol=1e-5, rtol=1e-5)
        for _, grads, weights in outcomes:
            assert grads.keys() == dict(policy.named_parameters()).keys()
            for name, parameter in policy.named_parameters():
                torch.testing.assert_close(grads[name], parameter.grad, atol=1e-5, rtol=1e-5)
            assert all(torch.equal(weights[name], value) for name, value in policy.state_dict().items())
        saved = AutoModelForCausalLM.from_pretrained(tmp_path / f"saved {tied}")
        config = json.loads((tmp_path / f"saved {tied}" / "config.json").read_text())
        assert config["architectures"] == ["Qwen3ForCausalLM"]
        assert all(torch.equal(p, q) for p, q in zip(saved.parameters(), policy.parameters(), strict=True))
        assert (saved.lm_head.weight is saved.model.embed_tokens.weight) == tied


def test_uniform_logits_score_minus_log_of_the_vocabulary(tiny):
    policy, _ = tiny_policy(TEXTS, vocab_size=400)
    torch.nn.init.zeros_(policy.lm_head.weight)
    scored = token_logprobs(policy, torch.tensor([[1, 2, 3]]), torch.ones(1, 3))
    each = -math.log(policy.config.vocab_size)
    torch.testing.assert_close(scored, torch.tensor([[0.0, each, each]]))
