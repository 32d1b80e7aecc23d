"""The loop: tensors from trajectories, gradients over micro-batches and processes, resume, bad input."""

import json
import math
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import ranks
import torch

import batch
import checkpoint
import logbook
import processes
import train
from kernelbench import Task
from kernelbench.judge import Verdict
from model import tiny_policy
from rollout import Trajectory, Turn

ROOT = Path(__file__).resolve().parents[1]


class FakeGym:
    """Verdicts by the place of a job in its call, so that a call's verdicts do not depend on the calls before it.

    before: run at the start of each call, with the number of the call.
    """

    def __init__(self, before=lambda call: None, verdict=None):
        self.before, self.verdict, self.calls = before, verdict, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def evaluate(self, jobs, progress=False):
        return [verdict for _, verdict in self.as_completed(jobs)]

    def as_completed(self, jobs):
        self.calls += 1
        self.before(self.calls)
        for i in range(len(jobs)):
            yield i, self.verdict or fake_verdict(i)


def fake_verdict(i: int) -> Verdict:
    if i % 3 == 0:
        figures = {"speedup": 1 + i % 5 / 4, "coverage": 0.5 + i % 2 / 2, "reference_ms": 2.0, "kernel_ms": 1.0}
        return Verdict("correct", correct=True, coverage_raw=0.9, **figures)
    return Verdict("hack", hack="no_own_kernel") if i % 3 == 1 else Verdict("wrong", message="off by one")


def small_policy(seed: int = 0):
    return tiny_policy([], hidden=32, layers=2, heads=2, seed=seed)[0]


def some_groups(prompts: int, samples: int, turns: int, vocabulary: int, policy=None) -> list[list[Trajectory]]:
    """Trajectories of random ids, and log-probs that are nearly the policy's own (1e-4 off at random)."""
    draw = random.Random(7)
    groups = []
    for p in range(prompts):
        group = []
        for g in range(samples):
            trajectory = Trajectory(Task(f"task {p}", "source"), g)
            for _ in range(turns):
                prompt, ids = ([draw.randrange(vocabulary) for _ in range(draw.randint(1, 9))] for _ in range(2))
                logp = [0.0] * len(ids)
                if policy:
                    logp = brute_logprobs(policy, prompt, ids)
                    logp = [x + draw.gauss(0, 1e-4) for x in logp]
                verdict = fake_verdict(draw.randrange(30))
                trajectory.turns.append(Turn(prompt, ids, logp, "text", None, verdict, True))
            group.append(trajectory)
        groups.append(group)
    return groups


@torch.no_grad()
def brute_logprobs(policy, prompt: list[int], ids: list[int]) -> list[float]:
    """One row at a time, no padding, full log-softmax."""
    logits = policy(torch.tensor([prompt + ids])).logits[0].double().log_softmax(-1)
    return [logits[len(prompt) + t - 1, token].item() for t, token in enumerate(ids)]


# --- Tensors


def test_outcomes_by_hand():
    task = Task("t", "source")
    good = Turn([1], [2, 3], [-0.5, -0.25], "", "code", Verdict("correct", correct=True, speedup=2.0, coverage=0.7))
    no_room = Turn([1], [], [], "", None, None)
    fault = Turn([1], [4], [-1.0], "", "code", Verdict("gym_error"), valid=False)
    o = batch.outcomes([[Trajectory(task, 0, [good, no_room]), Trajectory(task, 1, [fault])]], 2, 2)
    assert o.correct.tolist() == [[[True, False], [False, False]]]
    assert o.speedup.tolist() == [[[2.0, 0.0], [0.0, 0.0]]]
    assert o.valid.tolist() == [[[True, True], [False, False]]]
    assert o.status == ["correct", "out_of_context", "gym_error", "none"]
    logp, sampled = batch.sampled_tokens(o.turns)
    assert logp.tolist() == [[-0.5, -0.25], [0, 0], [-1.0, 0], [0, 0]]
    assert sampled.tolist() == [[True, True], [False, False], [True, False], [False, False]]


@pytest.mark.parametrize("micro_tokens", [1, 40, 10_000])
def test_recomputed_logprobs_equal_a_plain_forward(micro_tokens):
    policy = small_policy()
    turns = [t for g in some_groups(2, 2, 2, policy.config.vocab_size) for tr in g for t in tr.turns] + [None]
    width = max(len(turn.ids) for turn in turns if turn)
    logp, entropy = batch.recompute_logprobs(policy, turns, width, 1.0, micro_tokens)
    for row, turn in enumerate(turns):
        expected = brute_logprobs(policy, turn.prompt_ids, turn.ids) if turn else []
        assert logp[row].tolist() == pytest.approx(expected + [0.0] * (width - len(expected)), abs=1e-5)
    p = policy(torch.tensor([turns[0].prompt_ids + turns[0].ids])).logits[0, len(turns[0].prompt_ids) - 1].softmax(-1)
    assert entropy[0, 0].item() == pytest.approx(-(p * p.log()).sum().item(), abs=1e-5)


def gradients(micro_tokens: int) -> tuple[float, torch.Tensor]:
    policy = small_policy()
    turns = [t for g in some_groups(2, 3, 2, policy.config.vocab_size) for tr in g for t in tr.turns]
    logp_rollout, sampled = batch.sampled_tokens(turns)
    generator = torch.Generator().manual_seed(1)
    logp_old = batch.recompute_logprobs(policy, turns, sampled.shape[1], 1.0, 40)[0] - 0.3 * sampled  # ratios of 1.35
    advantage = torch.randn(len(turns), generator=generator)
    weight = sampled * torch.rand(sampled.shape, generator=generator)
    loss = batch.accumulate_gradients(policy, turns, logp_old, advantage, weight, 20, micro_tokens)
    return loss, torch.cat([p.grad.flatten() for p in policy.parameters()])


def test_micro_batches_change_nothing():
    loss, grad = gradients(micro_tokens=10_000)
    assert abs(loss) > 1e-5 and grad.norm() > 1e-4
    for size in (1, 30):
        other_loss, other = gradients(micro_tokens=size)
        assert other_loss == pytest.approx(loss, rel=1e-5)
        assert (other - grad).norm() < 1e-5 * grad.norm()


def test_micro_batches_hold_every_row_once_within_the_budget():
    assert batch.micro_batches([5, 1, 9, 3, 7], 10) == [[2, 1], [4, 3], [0]]
    assert batch.micro_batches([5, 12], 10) == [[1], [0]]  # a row beyond the budget stands alone


# --- Two processes


def learn_once(path: Path) -> None:
    """A rank: its share of four groups through one step of plain gradient descent."""
    from weights import shard

    processes.join("cpu", sharded=False)
    args = train.Args(samples=3, turns=2, prompts=4, temperature=1.0, micro_tokens=30, seed=5, grad_clip=1e9)
    policy, sampler = small_policy(), small_policy()
    groups = some_groups(4, 3, 2, policy.config.vocab_size, policy)
    groups[1][0].turns[1].logp[0] += 12  # a veto
    groups[2][1].turns = groups[2][1].turns[:1]
    groups[2][1].turns[0].valid = False
    for turn in groups[3][2].turns:
        turn.logp = [x - 0.02 for x in turn.logp]  # outside the band
    if processes.WORLD > 1:
        policy = shard(policy, torch.float32)
    optimizer = torch.optim.SGD(policy.parameters(), lr=1.0)  # the step is the gradient
    run = train.Run(args, policy, sampler, None, optimizer, logbook.TimedGym(FakeGym()), None, [])
    numbers = list(range(4))[processes.RANK :: processes.WORLD]
    line, _ = train.learn(run, 3, batch.outcomes([groups[n] for n in numbers], 3, 2), numbers)
    if processes.RANK == 0:
        weights = torch.cat([p.flatten() for p in sampler.parameters()])
        start = torch.cat([p.flatten() for p in small_policy().parameters()])
        torch.save((line, (start - weights).detach()), path)
    processes.leave()


def test_one_and_two_processes_agree(tmp_path):
    """Loss, gradient and metrics of the same rollouts, the groups on one process or spread over two."""
    two = ranks.start(2, learn_once, tmp_path / "2.pt", log=tmp_path)
    learn_once(tmp_path / "1.pt")
    assert ranks.finish(two) == [0, 0], (tmp_path / "0.txt").read_text()
    (one, grad), (two, other) = (torch.load(tmp_path / f"{n}.pt") for n in (1, 2))
    assert one["policy/rows"] >= 8 and one["keep/mrs"] < 1 and abs(one["policy/loss"]) > 1e-6
    assert (other - grad).norm() < 1e-5 * grad.norm()
    assert grad.norm().item() == pytest.approx(one["policy/grad_norm"], rel=1e-3)
    for name in one:
        if not name.startswith("time/"):
            assert two[name] == pytest.approx(one[name], rel=1e-5, abs=1e-9), name


def test_learn_by_hand():
    """Metrics and N_rows of a small batch whose numbers are set by hand; a second look at what a step does to θ."""
    policy, sampler = small_policy(), small_policy()
    task, prompt = Task("t", "source"), [5, 6]

    def turn(ids, verdict, valid=True):
        return Turn(prompt, ids, brute_logprobs(policy, prompt, ids), "", "code", verdict, valid)

    good = Verdict("correct", correct=True, speedup=2.0, coverage=1.0, coverage_raw=1.0)
    lazy = Verdict("correct", correct=True, speedup=1.0, coverage=0.1, coverage_raw=0.1)
    rows = [
        turn([7, 8], good),
        turn([9], lazy),
        turn([10, 11, 12], Verdict("wrong")),
        turn([3], Verdict("gym_error"), False),
    ]
    o = batch.outcomes([[Trajectory(task, g, [row]) for g, row in enumerate(rows)]], 4, 1)
    args = train.Args(
        samples=4, turns=1, prompts=1, temperature=1.0, micro_tokens=30, seed=0, max_gym_errors=0.5, grad_clip=1e9
    )
    run = train.Run(args, policy, sampler, None, torch.optim.SGD(policy.parameters(), lr=1.0), None, None, [])
    expected = {n: p.clone() for n, p in policy.named_parameters()}
    line, returns = train.learn(run, 1, o, [0])
    assert returns.flatten().tolist() == pytest.approx([4.0, 2.1, 0.0, 0.0])
    # A = 4 - 1.05, (2.1 - 2: dropped by PRS), 0 - 3.05; N_rows = 3 although one of them is rejected
    twin = small_policy()
    total = 0.0
    for row, a in ((rows[0], 4 - 1.05), (rows[2], -3.05)):
        logits = twin(torch.tensor([prompt + row.ids])).logits[0].log_softmax(-1)
        total = total + a * sum(logits[1 + t, token] for t, token in enumerate(row.ids))
    (-total / (3 * 1000)).backward()
    step = torch.cat([(expected[n] - p).flatten() for n, p in policy.named_parameters()])
    grad = torch.cat([p.grad.flatten() for p in twin.parameters()])
    assert (step - grad).norm() < 1e-3 * grad.norm()
    assert line["policy/rows"] == 2 and line["keep/rows"] == pytest.approx(2 / 3)
    assert line["keep/prs"] == 0.5 and line["keep/mrs"] == 1.0
    assert line["reward/mean"] == pytest.approx(6.1 / 3) and line["gym/correct"] == pytest.approx(2 / 3)
    assert line["gym/fast@1"] == pytest.approx(2 / 3) and line["gym/fast@1.2"] == pytest.approx(1 / 3)
    assert line["gym/coverage"] == pytest.approx(0.55) and line["gym/speedup"] == pytest.approx(1.5)
    assert line["gym/wrong"] == 0.25 and line["gym/error"] == 0.25 and line["policy/tokens"] == 7 / 4
    entropy = -sum(sum(row.logp) for row in rows) / 7
    assert line["policy/entropy"] == pytest.approx(entropy, rel=1e-5)
    assert line["policy/kl_k1"] == pytest.approx(0, abs=1e-6) and line["policy/ratio"] == pytest.approx(1, abs=1e-6)
    assert all(torch.equal(p, q) for p, q in zip(policy.parameters(), sampler.parameters(), strict=True))


def test_perturb_is_relative_and_repeatable():
    a, b, c = small_policy(), small_policy(), small_policy()
    train.perturb(a, 0.01, seed=3)
    train.perturb(b, 0.01, seed=3)
    x, y, z = (torch.cat([p.flatten() for p in m.parameters()]) for m in (a, b, c))
    assert torch.equal(x, y)
    assert (x[z != 0] / z[z != 0] - 1).std().item() == pytest.approx(0.01, rel=0.05)


def test_prompts_go_through_all_tasks_before_one_comes_again():
    tasks = [Task(str(n), "") for n in range(5)]
    order = [train.prompt_of(tasks, 1, n).name for n in range(10)]
    assert sorted(order[:5]) == sorted(order[5:]) == list("01234")
    assert order != [train.prompt_of(tasks, 2, n).name for n in range(10)]


# --- Whole runs


QUICK = "--model tiny --random-init --device cpu --prompts 2 --samples 3 --turns 2 --max-response 4 --seed 1".split()
QUICK += "--tasks toy/train:6 --eval-tasks toy/test:2 --steps 3 --save-every 2".split()


def command(*argv, gym=None, quick=True):
    """train.py's command in this process, with a fake gym."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "Gym", lambda **_: gym or FakeGym())
        patch.setattr(sys, "argv", ["train.py", *(QUICK if quick else []), *map(str, argv)])
        train.main()


def numbers_of(out: Path) -> list[dict]:
    lines = logbook.read_metrics(out)[1:]
    return [
        {k: v for k, v in line.items() if not k.startswith("time/") and k != "gym/evals_per_second"} for line in lines
    ]


def weights_of(out: Path) -> torch.Tensor:
    policy = train.load_policy(str(checkpoint.checkpoints(out)[-1]), "cpu")[0]
    return torch.cat([p.flatten() for p in policy.parameters()])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted run for the others to compare with."""
    out = tmp_path_factory.mktemp("whole") / "run"
    command("--out", out)
    return out


def killed_at(out: Path, call: int) -> None:
    """train.py's command in a process that kills itself at the gym's call `call`."""
    command("--out", out, gym=FakeGym(lambda now: os.kill(os.getpid(), signal.SIGKILL) if now == call else None))


def test_a_run_leaves_what_it_promises(whole):
    lines = logbook.read_metrics(whole)
    assert lines[0]["header"]["args"]["lr"] == 5e-4 and lines[0]["header"]["args"]["seed"] == 1
    assert [line["step"] for line in lines[1:]] == [0, 1, 2, 3, 3]
    assert "eval/correct" in lines[1] and "eval/fast@1.2" in lines[-1] and "eval/correct" not in lines[2]
    assert all(line["policy/updated"] == 1 and line["policy/grad_norm"] > 0 for line in lines[2:-1])
    assert lines[2]["gym/correct"] == pytest.approx(2 / 6) and lines[2]["gym/hack"] == pytest.approx(2 / 6)
    assert "verdict: correct" in (whole / "transcripts" / "step_000001.txt").read_text()
    assert (whole / "plot.png").read_bytes()[:4] == b"\x89PNG"
    assert [folder.name for folder in checkpoint.checkpoints(whole)] == ["step_000002", "step_000003"]


def test_killed_and_resumed_equals_uninterrupted(whole, tmp_path):
    """SIGKILL in the middle of step 3 (call 1-2: evaluation; 2 calls a step), after the checkpoint of step 2."""
    out = tmp_path / "run"
    killed = ranks.start(1, killed_at, out, 8, log=tmp_path)
    assert ranks.finish(killed) == [-signal.SIGKILL] and len(numbers_of(out)) == 3
    command("--resume", out, quick=False)
    assert numbers_of(out) == numbers_of(whole)
    assert torch.equal(weights_of(out), weights_of(whole))


def test_offload_changes_nothing(whole, tmp_path):
    out = tmp_path / "run"
    command("--out", out, "--offload")
    assert (weights_of(out) - weights_of(whole)).abs().max() < 1e-6
    losses = [[line["policy/loss"] for line in numbers_of(run) if "policy/loss" in line] for run in (out, whole)]
    assert len(losses[0]) == 3 and losses[0] == pytest.approx(losses[1], rel=1e-3)


@pytest.mark.parametrize("number,call", [(signal.SIGINT, 4), (signal.SIGTERM, 5)])
def test_ctrl_c_leaves_a_resumable_run(whole, tmp_path, capsys, number, call):
    out = tmp_path / "run"
    command("--out", out, gym=FakeGym(lambda n: os.kill(os.getpid(), number) if n == call else None))
    assert f"--resume {out}" in capsys.readouterr().out
    assert len(numbers_of(out)) < 4
    with (out / "metrics.jsonl").open("a") as file:  # what a kill may leave: a step beyond the checkpoint, half a line
        file.write(json.dumps({"step": 3, "reward/mean": 9.0}) + '\n{"step": 4, "rew')
    command("--resume", out, quick=False)
    assert numbers_of(out) == numbers_of(whole)
    assert torch.equal(weights_of(out), weights_of(whole))


def test_told_to_stop_in_the_last_evaluation(whole, tmp_path):
    """Calls 9 and 10: after step 3, whose update stays; the evaluation is made up for."""
    out = tmp_path / "run"
    command("--out", out, gym=FakeGym(lambda n: os.kill(os.getpid(), signal.SIGTERM) if n == 9 else None))
    assert [line["step"] for line in numbers_of(out)] == [0, 1, 2, 3]
    command("--resume", out, quick=False)
    assert numbers_of(out) == numbers_of(whole)


# --- Bad input: a sentence each, nothing lost


def sentence(*argv, **kwargs) -> str:
    with pytest.raises(SystemExit) as error:
        command(*argv, **kwargs)
    assert isinstance(error.value.code, str) and "\n" not in error.value.code.strip()
    return error.value.code


def test_unknown_model_and_tasks(tmp_path):
    assert "no-such-model" in sentence("--out", tmp_path / "a", "--model", "no-such-model")
    assert "level9" in sentence("--out", tmp_path / "b", "--tasks", "level9")
    (tmp_path / "empty").mkdir()
    assert str(tmp_path / "empty") in sentence("--out", tmp_path / "c", "--tasks", tmp_path / "empty")
    (tmp_path / "bare.py").write_text("class Model: pass\n")
    assert "get_inputs" in sentence("--out", tmp_path / "d", "--tasks", tmp_path / "bare.py")
    assert not (tmp_path / "b").exists()


def test_out_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    assert "--out" in sentence("--out", tmp_path / "file" / "run")


def test_out_that_holds_a_run(whole):
    before = (whole / "metrics.jsonl").read_bytes()
    assert f"--resume {whole}" in sentence("--out", whole)
    assert (whole / "metrics.jsonl").read_bytes() == before


def test_resume_of_nothing_and_of_another_model(whole, tmp_path):
    assert "holds no run" in sentence("--resume", tmp_path, quick=False)
    message = sentence("--resume", whole, "--model", "qwen-0.6b", quick=False)
    assert "run of tiny" in message and "step_000003" in message


def test_no_space_for_a_checkpoint(tmp_path, monkeypatch):
    """Found at once where there is none; later, what is there stays."""
    free = [1000]
    monkeypatch.setattr(checkpoint.shutil, "disk_usage", lambda _: type("Usage", (), {"free": free.pop(0)}))
    message = sentence("--out", tmp_path / "run")
    assert "GiB free" in message and "--resume" in message and numbers_of(tmp_path / "run") == []
    free[:] = [1e12, 1e12, 1000, 1000]
    message = sentence("--out", tmp_path / "run")
    assert "GiB free" in message and "--resume" in message
    assert [line["step"] for line in numbers_of(tmp_path / "run")] == [0, 1, 2, 3]
    assert [folder.name for folder in checkpoint.checkpoints(tmp_path / "run")] == ["step_000002"]


def test_a_busy_gpu(tmp_path, monkeypatch):
    def load_policy(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(train, "load_policy", load_policy)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**30, 140 * 2**30))
    message = sentence("--out", tmp_path / "run")
    assert "1 of 140 GiB free" in message and "CUDA_VISIBLE_DEVICES" in message


def test_equal_returns_everywhere_are_skipped(tmp_path, capsys):
    verdict = Verdict("correct", correct=True, speedup=1.5, coverage=1.0, coverage_raw=1.0)
    gym = FakeGym(verdict=verdict)
    command("--out", tmp_path / "run", "--steps", "1", "--refill", gym=gym)
    line = numbers_of(tmp_path / "run")[1]
    assert line["reward/equal_groups"] == 1 and line["policy/updated"] == 0
    assert gym.calls == 2 + 4 * 2 + 2  # the evaluation's turns, four rounds of two turns, the evaluation's
    assert "equal returns" in capsys.readouterr().out


def test_every_kernel_failing(tmp_path, capsys):
    command("--out", tmp_path / "run", "--steps", "1", gym=FakeGym(verdict=Verdict("compile_error", message="no")))
    assert "compile_error 100%" in capsys.readouterr().out
    assert numbers_of(tmp_path / "run")[1]["policy/updated"] == 0


def test_a_gradient_that_is_not_finite_is_dropped(tmp_path, monkeypatch, capsys):
    real = train.accumulate_gradients

    def poisoned(policy, *args, **kwargs):
        loss = real(policy, *args, **kwargs)
        next(policy.parameters()).grad[0] = math.nan
        return loss

    monkeypatch.setattr(train, "accumulate_gradients", poisoned)
    message = sentence("--out", tmp_path / "run", "--max-skips", "2")
    assert "2 steps in a row" in message and "--resume" in message
    assert capsys.readouterr().out.count("not finite") == 2
    skipped = [(line["policy/skipped"], line["policy/updated"]) for line in numbers_of(tmp_path / "run")[1:]]
    assert skipped == [(1, 0), (1, 0)]
    before = torch.cat([p.flatten() for p in train.load_policy("tiny", "cpu", random_init=True)[0].parameters()])
    assert torch.equal(weights_of(tmp_path / "run"), before)
    json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1], parse_constant=pytest.fail)


def test_which_gradients_are_skipped():
    norms = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 100.0]  # median 4.5
    assert logbook.why_skipped(0.1, 89.9, norms, 20) is None
    assert "90.1, is more than 20 times the median of the last 8, 4.5" in logbook.why_skipped(0.1, 90.1, norms, 20)
    assert logbook.why_skipped(0.1, 90.1, norms, 0) is None and logbook.why_skipped(0.1, 90.1, norms[:7], 20) is None
    assert "not finite" in logbook.why_skipped(0.1, math.inf, [], 0) and "not finite" in logbook.why_skipped(
        math.nan, 1, [], 0
    )


def test_a_gradient_that_explodes_is_dropped(tmp_path, monkeypatch, capsys):
    """From the tenth step on a hundred times the usual norm: skipped until it has become the usual one, on both sides of a
    resume."""
    real, at = train.accumulate_gradients, [0]

    def louder(policy, *args, **kwargs):
        loss, at[0] = real(policy, *args, **kwargs), at[0] + 1
        norm = torch.nn.utils.get_total_norm([p.grad for p in policy.parameters()])
        for p in policy.parameters():
            p.grad *= (1 if at[0] < 10 else 100) / norm
        return loss

    monkeypatch.setattr(train, "accumulate_gradients", louder)
    small = ["--prompts", "1", "--samples", "2", "--turns", "1", "--max-response", "1", "--eval-tasks", "toy/test:1"]
    command("--out", tmp_path / "run", *small, "--lr", "0", "--save-every", "100", "--steps", "13")
    command("--resume", tmp_path / "run", "--steps", "20", "--max-skips", "100", quick=False)
    updates = [line for line in numbers_of(tmp_path / "run") if "policy/skipped" in line]
    # median of 9 ones and n hundreds: above 100 / 20 once n >= 9
    assert [line["policy/skipped"] for line in updates] == [0] * 9 + [1] * 9 + [0] * 2
    assert "more than 20 times the median of the last 9, 1" in capsys.readouterr().out


def test_a_gym_that_fails_stops_the_run(tmp_path):
    gym = FakeGym()
    gym.before = lambda call: setattr(gym, "verdict", Verdict("gym_error", message="no driver") if call == 5 else None)
    message = sentence("--out", tmp_path / "run", gym=gym)
    assert "no driver" in message and "--resume" in message
    assert [folder.name for folder in checkpoint.checkpoints(tmp_path / "run")] == ["step_000001"]


@pytest.mark.parametrize("argv,flag", [(["--samples", "1"], "--samples"), (["--temperature", "0"], "--temperature")])
def test_settings_that_cannot_work(tmp_path, argv, flag):
    assert flag in sentence("--out", tmp_path / "run", *argv)


def test_one_process_and_several_gpus(monkeypatch, capsys):
    """Becomes torchrun, without what a torchrun around it has set; a rank of torchrun stays what it is."""
    ran = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(processes.os, "execv", lambda *argv: ran.append((argv, dict(os.environ))))
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "x", "OTHER": "1"}.items():
        monkeypatch.setenv(name, value)
    processes.one_process_per_gpu(["train.py", "--model", "qwen-14b"])
    ((python, argv), env), *more = ran
    assert python == argv[0] == sys.executable and not more
    assert argv[1:] == [*"-m torch.distributed.run --standalone --nproc-per-node=8 train.py --model qwen-14b".split()]
    assert not {"RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"} & set(env) and env["OTHER"] == "1"
    assert "8 GPUs" in capsys.readouterr().out
    monkeypatch.setattr(processes, "WORLD", 8)
    processes.one_process_per_gpu(["train.py"])
    assert len(ran) == 1


def test_the_real_command(tmp_path):
    """torchrun, the real gym, real verdicts (an untrained policy's: no code)."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", str(ROOT / "train.py"), *QUICK]
    run = subprocess.run(
        [*command, "--steps", "1", "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    assert "held-out" in run.stdout and "no kernel of the batch is correct (no_code 100%)" in run.stdout
