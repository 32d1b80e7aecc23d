"""Prompts, code extraction, the multi-turn loop, JSONL, and the collecting CLI."""

import contextlib
import json
import sys
import threading
from pathlib import Path

import pytest
import torch

import logbook
import rollout as module
from engine import Engine
from gym import Job
from kernelbench import Task, TaskError
from kernelbench.judge import Verdict
from model import ModelError, save_policy, tiny_policy, token_logprobs
from rollout import (
    INSTRUCTIONS,
    Trajectory,
    TrajectoryError,
    encode_feedback,
    encode_prompt,
    extract_code,
    load_jsonl,
    prompt_text,
    rollout,
    save_jsonl,
)

TASKS = [Task("toy/a", "x = x * 2.5\nrows = 17\n"), Task("toy/b", "é\x00\U0001f680 <|im_end|>\r\n")]
PAD, START, END = 0, 1, 2


@pytest.fixture(scope="module")
def tiny():
    policy, tokenizer = tiny_policy([t.source for t in TASKS] * 5 + ["user\n", "assistant\n", "wrong output"], 300)
    return policy.eval(), tokenizer


class FakeGym:
    """Gives the statuses of `rounds` in turn, one list per call of evaluate; keeps the jobs."""

    device = "cpu"

    def __init__(self, *rounds):
        self.rounds, self.jobs = list(rounds), []

    def evaluate(self, jobs, progress=False):
        self.jobs.append(list(jobs))
        statuses = self.rounds.pop(0) if self.rounds else ["wrong"] * len(jobs)
        return [Verdict(status=s, correct=s == "correct", speedup=2.04) for s in statuses]


def roll(tiny, gym, tasks=TASKS, **changes):
    settings = {"samples": 2, "turns": 3, "style": "brief", "max_prompt": 200, "max_response": 12, "context": 400}
    return rollout(*tiny, tasks, gym, **(settings | {"seed": 7} | changes))


# --------------------------------------------------------------------------------------------------------------- layout


def test_chat_layout_is_exact(tiny):
    _, tokenizer = tiny
    plain = lambda text: tokenizer(text, add_special_tokens=False).input_ids  # noqa: E731
    header = [END, *plain("\n"), START, *plain("assistant\n")]
    assert encode_prompt(tokenizer, "wrong output") == [START, *plain("user\nwrong output"), *header]
    message = [*plain("\n"), START, *plain("user\nwrong output"), *header]
    assert encode_feedback(tokenizer, [50, END], "wrong output") == message
    assert encode_feedback(tokenizer, [50, 51], "wrong output") == [END, *message]  # a cut answer is closed
    assert tokenizer.decode(encode_prompt(tokenizer, "a")) == "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"


def test_markers_in_a_task_are_text(tiny):
    ids = encode_prompt(tiny[1], "<|im_end|>\n<|im_start|>assistant\n<|endoftext|>")
    assert (ids.count(START), ids.count(END), ids.count(PAD)) == (2, 1, 0)


def test_thinking_is_off_where_the_template_would_think(tiny, monkeypatch):
    monkeypatch.setattr(tiny[1], "chat_template", "{% if enable_thinking is false %}...{% endif %}")
    assert tiny[1].decode(encode_prompt(tiny[1], "a")).endswith("assistant\n<think>\n\n</think>\n\n")


def test_prompts(tiny):
    assert prompt_text(TASKS[0], "brief") == TASKS[0].source
    full = prompt_text(TASKS[0], "full")
    assert TASKS[0].source in full and 'input_precision="ieee"' in full
    example = extract_code(INSTRUCTIONS)
    assert example.startswith("import torch") and "@triton.jit" in example
    compile(example, "example", "exec")


# ----------------------------------------------------------------------------------------------------------- extraction

A, B = "class ModelNew(nn.Module):\n    a = 1\n", "class ModelNew:\n    b = 2\n"
DOC = 'class ModelNew:\n    """\n```python\nModelNew()\n```\n    """\n'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"Sure:\n```python\n{A}```\nDone.", A),
        (f"```python\n{A}```", A),
        (f"```\n{A}```\n", A),
        (f"~~~py\n{A}~~~~\n", A),
        (f"````python\n{A}```\n````\n", f"{A}```\n"),
        (f"```python\n{A}```\nBetter:\n```python\n{B}```\n", B),
        (f"```python\n{A}```\nUse it:\n```python\nModelNew()\n```\n", A),
        (f"```python\n{A}```\n```cpp\n{B}```\n```text\n{B}```\n", A),
        (f"```python\n{A}```\n```python\n{B}", A),  # the second was cut
        (f"```python\n{A}", None),
        (f"```python\nimport torch\n```python\n{A}```\n", A),  # the first was cut
        (f"```python\nx = (\n```\nprose\n```python\n{A}```\n", A),
        (f"```python\n{A}```\nprints\n```\nclass ModelNew is here\n```\n", A),
        (f"```python\n{DOC}```\n", DOC),
        ("```python\nclass ModelNewer(nn.Module): pass\n```", None),
        ("```python\nif 1:\n    class ModelNew: pass\n```", None),
        ("```python\n# class ModelNew:\n```", None),
        (f"`python\n{A}`", None),
        (A, None),
        ("", None),
        (f"```python\n{A}".replace("\n", "\r\n") + "```\r\n", A),
        ("```python\nclass ModelNew(:\n```", "class ModelNew(:\n"),  # the gym will say what is wrong with it
        ("```python\nclass ModelNew: x = '\x00'\n```", "class ModelNew: x = '\x00'\n"),
        (f"```python\nclass ModelNew: x = {'(' * 5000}\n```", f"class ModelNew: x = {'(' * 5000}\n"),
        ("```\n" * 3001, None),
    ],
)
def test_extract_code(text, code):
    assert extract_code(text) == code


# ----------------------------------------------------------------------------------------------------------------- loop


def test_turns_append_ids_and_never_tokenise_again(tiny):
    gym = FakeGym(["correct", "wrong", "hack", "no_code"], ["timeout"] * 4)
    groups = roll(tiny, gym)
    assert [[t.sample for t in group] for group in groups] == [[0, 1], [0, 1]]
    told = iter(["correct, speed-up 2.0, coverage 0.0", "wrong output", "hack: no own kernel", "no code"])
    for task, group in zip(TASKS, groups, strict=True):
        for trajectory in group:
            first, second, third = trajectory.turns
            assert first.prompt_ids == encode_prompt(tiny[1], task.source)
            after = encode_feedback(tiny[1], first.ids, next(told))
            assert second.prompt_ids == first.prompt_ids + first.ids + after
            assert third.prompt_ids[: len(second.prompt_ids) + len(second.ids)] == second.prompt_ids + second.ids
            assert all(len(turn.ids) == len(turn.logp) <= 12 and turn.valid for turn in trajectory.turns)
            for turn in trajectory.turns:
                row = torch.tensor([turn.prompt_ids + turn.ids])
                scored = token_logprobs(tiny[0], row, torch.ones_like(row))[0, len(turn.prompt_ids) :]
                torch.testing.assert_close(torch.tensor(turn.logp), scored, atol=1e-5, rtol=0)
    assert [len(jobs) for jobs in gym.jobs] == [4, 4, 4]


def test_the_stop_token_belongs_to_the_answer(tiny):
    policy, tokenizer = tiny_policy([], 0)
    torch.nn.init.zeros_(policy.lm_head.weight)
    torch.nn.init.ones_(policy.model.norm.weight)
    with torch.no_grad():
        policy.model.embed_tokens.weight.copy_(torch.ones_like(policy.model.embed_tokens.weight))
        hidden = policy.model(input_ids=torch.tensor([[START, 40]])).last_hidden_state[0, -1]
        policy.lm_head.weight[END] = 100 * hidden / hidden.norm()  # it always ends at once
    turn = roll((policy.eval(), tokenizer), FakeGym(), samples=1, turns=1)[0][0].turns[0]
    assert (turn.ids, turn.text, turn.code) == ([END], "", None)
    assert turn.logp[0] == pytest.approx(0.0, abs=1e-4)


def test_the_engine_rolls_out_as_hugging_face_generate_does(tiny, monkeypatch):
    """Greedy, four slots; and once more with every answer judged while others are generated."""
    settings = {"temperature": 0.0, "samples": 3, "context": 300}
    expected = roll(tiny, FakeGym(), **settings)
    engines = []

    def engine_for(model, **settings):
        engines.append(Engine(model, **settings, page=16))
        return engines[-1]

    monkeypatch.setattr(module, "engine_for", engine_for)
    for overlap in (False, True):
        gym = FakeGym()
        groups = roll(tiny, gym, batch=4, overlap=overlap, **settings)
        turns, known = ([turn for g in rolled for t in g for turn in t.turns] for rolled in (groups, expected))
        for mine, turn in zip(turns, known, strict=True):
            assert vars(mine) | {"logp": None} == vars(turn) | {"logp": None}
            assert mine.logp == pytest.approx(turn.logp, abs=1e-4)
        assert [len(jobs) for jobs in gym.jobs] == ([1] * 18 if overlap else [6] * 3)
        counts = engines[-1].counts
        assert counts["sampled"] == sum(len(turn.ids) for turn in turns)
        later = sum(len(turn.prompt_ids) for g in expected for t in g for turn in t.turns[1:])
        assert 0 < counts["found"] and counts["prefilled"] < later / 2  # earlier turns are not computed again
    assert tiny[0].config._attn_implementation == "sdpa"


def test_seconds_of_judging_count_once_where_calls_overlap(monkeypatch):
    """Two calls from 1 to 4 and from 2 to 7, then one from 10 to 11: 6 + 1 seconds."""
    now, inside, leave = [0.0], [threading.Event() for _ in "ab"], [threading.Event() for _ in "ab"]
    monkeypatch.setattr(logbook.time, "perf_counter", lambda: now[0])

    class Waiting:
        def as_completed(self, jobs):
            if jobs:
                number = int(jobs[0].code)
                inside[number].set(), leave[number].wait(30)
            else:
                now[0] += 1
            return enumerate(jobs)

    timed, threads = logbook.TimedGym(Waiting()), []
    for number, at in enumerate((1.0, 2.0)):
        now[0] = at
        threads.append(threading.Thread(target=timed.evaluate, args=([Job(TASKS[0], str(number))],)))
        threads[-1].start(), inside[number].wait(30)
    for number, at in enumerate((4.0, 7.0)):
        now[0] = at
        leave[number].set(), threads[number].join(30)
    now[0] = 10.0
    timed.evaluate([])
    assert (timed.seconds, timed.jobs) == (7.0, 2)


def test_rollouts_are_deterministic(tiny):
    once = roll(tiny, FakeGym())
    torch.manual_seed(99)
    assert roll(tiny, FakeGym()) == once
    other = roll(tiny, FakeGym(), seed=8)
    assert [t.turns[0].ids for g in once for t in g] != [t.turns[0].ids for g in other for t in g]
    assert once[0][0].turns[0].ids != once[0][1].turns[0].ids  # samples of a task differ
    assert once[0][0].turns[0].ids != once[0][0].turns[1].ids


def test_batches_only_change_the_draws(tiny):
    groups = roll(tiny, FakeGym(), batch=3)
    assert [len(group) for group in groups] == [2, 2]
    assert all(len(t.turns) == 3 for g in groups for t in g)


def test_a_gym_error_ends_the_rollout_and_invalidates_what_came_before(tiny):
    first = ["wrong", "gym_error", "wrong", "unsupported"]
    gym = FakeGym(first, ["wrong", "gym_error", "correct"], ["correct", "wrong"])
    (a, b), (c, d) = roll(tiny, gym)
    assert [[turn.valid for turn in t.turns] for t in (a, b, c, d)] == [
        [True, True, True],
        [False],
        [False, False],
        [False, True, True],  # what cannot be judged says nothing; the rollout goes on
    ]
    assert [len(jobs) for jobs in gym.jobs] == [4, 3, 2]


def test_turns_that_do_not_fit(tiny):
    """Lengths from the layout: a prompt of n ids, answers of at most 12, context n + 5: five tokens, then no room."""
    n = len(encode_prompt(tiny[1], TASKS[0].source))
    gym = FakeGym(["wrong"], [], [])
    ((trajectory,),) = roll(tiny, gym, tasks=TASKS[:1], samples=1, context=n + 5)
    first, second, third = trajectory.turns
    assert 1 <= len(first.ids) <= 5
    for turn in (second, third):
        assert (turn.ids, turn.logp, turn.code, turn.verdict, turn.valid) == ([], [], None, None, True)
    ((trajectory,),) = roll(tiny, FakeGym([], [], []), tasks=TASKS[:1], samples=1, max_prompt=n - 1)
    assert [turn.ids for turn in trajectory.turns] == [[], [], []]


# ---------------------------------------------------------------------------------------------------------------- JSONL


def test_trajectories_survive_a_file(tiny, tmp_path):
    trajectories = [t for group in roll(tiny, FakeGym(), context=70) for t in group]
    save_jsonl(tmp_path / "new" / "a.jsonl", trajectories[:1])
    save_jsonl(tmp_path / "new" / "a.jsonl", trajectories[1:], append=True)
    assert load_jsonl(tmp_path / "new" / "a.jsonl") == trajectories


@pytest.mark.parametrize("bad", ["{", '{"task": 1}', "[]", "3", '{"task": {"name": "a"}, "sample": 0, "turns": []}'])
def test_a_broken_line_is_named(tmp_path, bad):
    path = tmp_path / "a.jsonl"
    save_jsonl(path, [Trajectory(TASKS[0], 0)])
    path.write_text(path.read_text() + "\n" + bad + "\n")
    with pytest.raises(TrajectoryError, match=r"a\.jsonl, line 3 .*sed -i 3d"):
        load_jsonl(path)


# ------------------------------------------------------------------------------------------------------------------ CLI


@pytest.fixture
def cli(tiny, tmp_path, monkeypatch):
    """Runs main on four tasks, two per part, with a gym that can be stopped after some calls."""
    save_policy(*tiny, tmp_path / "policy")
    tasks = [Task(f"t{i}", f"x = x * {i}.5\n") for i in range(4)]
    monkeypatch.setattr(module, "load_tasks", lambda *_, **__: tasks)

    def run(out, stop_after=None):
        calls = []

        class Gym(FakeGym):
            def evaluate(self, jobs, progress=False):
                calls.append(len(jobs))
                if stop_after is not None and len(calls) > stop_after:
                    raise KeyboardInterrupt
                return super().evaluate(jobs, progress)

        monkeypatch.setattr(module, "Gym", lambda **_: contextlib.nullcontext(Gym()))
        args = module.Args(model=str(tmp_path / "policy"), out=out, samples=2, turns=2, max_response=5, rollout_batch=4)
        module.main(args)
        return calls

    return run


def test_an_interrupted_collection_goes_on(cli, tmp_path):
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    assert cli(whole) == [4, 4, 4, 4]
    with pytest.raises(KeyboardInterrupt):
        cli(parts, stop_after=3)
    assert [(t.task.name, t.sample) for t in load_jsonl(parts)] == [("t0", 0), ("t0", 1), ("t1", 0), ("t1", 1)]
    lines = parts.read_text().splitlines(keepends=True)
    parts.write_text("".join(lines[:3]))  # as if it had been killed while writing
    assert cli(parts) == [4, 4, 4, 4]
    key = lambda t: (t.task.name, t.sample)  # noqa: E731
    assert sorted(load_jsonl(parts), key=key) == load_jsonl(whole)
    assert cli(parts) == []


@pytest.mark.parametrize("error", [ModelError("no model"), TaskError("no task"), OSError("disk full")])
def test_errors_are_sentences(error, monkeypatch, tmp_path):
    """The block under `__main__`, with load_tasks failing."""
    import runpy

    def fail(*_, **__):
        raise error

    monkeypatch.setattr("kernelbench.load_tasks", fail)
    monkeypatch.setattr(sys, "argv", ["rollout.py", "--out", str(tmp_path / "o.jsonl"), "--device", "cpu"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(Path(module.__file__)), run_name="__main__")
    assert stopped.value.code.startswith(f"rollout.py: {error}")


def test_a_transcript_line_is_plain_json(tiny):
    ((trajectory, *_), *_) = roll(tiny, FakeGym())
    data = json.loads(json.dumps(trajectory.to_json()))
    assert set(data) == {"task", "sample", "turns"}
    assert set(data["turns"][0]) == {"prompt_ids", "ids", "logp", "text", "code", "verdict", "valid"}
