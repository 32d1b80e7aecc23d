"""Hugging Face's generate under our own settings, and who generates where."""

import pytest
import torch

import generation
from engine import Request, supports
from generation import engine_for
from model import tiny_policy, token_logprobs

PAD, START, END = 0, 1, 2


@pytest.fixture(scope="module")
def tiny():
    return tiny_policy(["x = x * 2.5\nrows = 17\n"] * 5, 300)[0].eval()


def generate(model, prompts, max_new, **settings):
    requests = [Request(ids, limit) for ids, limit in zip(prompts, max_new, strict=True)]
    generation.generate(model, requests, **settings)
    return [(request.new, request.logp) for request in requests]


GREEDY = {"stop_ids": {END, PAD}, "pad_id": PAD, "temperature": 0.0, "top_p": 1.0, "seed": 0}


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 0.8), (0.0, 1.0)])
def test_sampled_logprobs_equal_a_plain_forward(tiny, temperature, top_p):
    prompts = [[START, 40, 41, 42, 43, 44, 45], [START], [START, 60, 61]]
    settings = GREEDY | {"temperature": temperature, "top_p": top_p}
    for prompt, (ids, logp) in zip(prompts, generate(tiny, prompts, max_new=[9, 9, 4], **settings), strict=True):
        row = torch.tensor([prompt + ids])
        scored = token_logprobs(tiny, row, torch.ones_like(row), temperature or 1.0)[0, len(prompt) :]
        torch.testing.assert_close(torch.tensor(logp), scored, atol=1e-5, rtol=0)
        assert len(ids) == len(logp) <= 9
    assert len(ids) <= 4


def test_the_models_own_generation_config_changes_nothing(tiny, monkeypatch):
    prompts, settings = [[START, 40], [START, 41, 42]], GREEDY | {"temperature": 1.0}
    plain = generate(tiny, prompts, max_new=[20, 20], **settings)
    own = type(tiny.generation_config)(
        do_sample=True, top_k=1, top_p=0.1, temperature=0.1, repetition_penalty=9.0, min_new_tokens=20, eos_token_id=50
    )
    monkeypatch.setattr(tiny, "generation_config", own)
    assert generate(tiny, prompts, max_new=[20, 20], **settings) == plain
    assert tiny.generation_config is own


def test_generation_depends_on_its_seed_alone(tiny):
    settings = GREEDY | {"temperature": 1.0}
    outcomes = []
    for noise, seed in ((1, 3), (2, 3), (1, 4)):
        torch.manual_seed(noise)
        outcomes.append(generate(tiny, [[START, 40]], max_new=[20], **(settings | {"seed": seed})))
        state = torch.rand(1)
        torch.manual_seed(noise)
        assert torch.rand(1) == state
    assert outcomes[0] == outcomes[1] != outcomes[2]


def test_the_engine_takes_half_precision_on_a_gpu_only(tiny):
    assert supports(tiny)
    assert engine_for(tiny, slots=1, context=64, stop_ids={END}) is None
    config = type(tiny.config)(
        **(
            tiny.config.to_dict()
            | {"use_sliding_window": True, "sliding_window": 8, "layer_types": None, "max_window_layers": 0}
        )
    )
    assert not supports(type(tiny)(config))
