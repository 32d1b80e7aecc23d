"""Rows and their masks, the training step, the cold start, fine-tuning on trajectories."""

import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import ranks
import torch
from transformers import AutoModelForCausalLM

import logbook
import sft
from checkpoint import RunError, checkpoints
from kernelbench import Task, toy
from kernelbench.judge import Verdict
from model import ModelError, preset_of, save_policy, tiny_policy, token_logprobs
from rollout import Trajectory, TrajectoryError, Turn, rollout, save_jsonl

ROOT = Path(__file__).resolve().parents[1]
START, END = 1, 2


@pytest.fixture(scope="module")
def tiny():
    tasks = [toy.make("train", 0, i, "cpu") for i in range(20)]
    return tiny_policy(sft.tokenizer_texts(tasks, random.Random(0)), 400)


def test_the_answers_and_their_end_are_in_the_loss_and_nothing_else(tiny):
    _, tokenizer = tiny
    turns = [("one\n", Verdict(status="wrong")), ("two", Verdict(status="correct", correct=True))]
    ids, wanted = sft.encode_row(tokenizer, "task\n", turns, brief=True)
    assert tokenizer.decode(ids) == (
        "<|im_start|>user\ntask\n<|im_end|>\n<|im_start|>assistant\none\n<|im_end|>\n"
        "<|im_start|>user\nwrong output<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>"
    )
    trained = [i for i, w in zip(ids, wanted, strict=True) if w]
    assert tokenizer.decode(trained) == "one\n<|im_end|>two<|im_end|>"
    assert sum(w for i, w in zip(ids, wanted, strict=True) if i == END) == 2  # of the four ends in the row


def test_a_row_is_what_a_rollout_shows_the_policy(tiny):
    """A rollout's own ids, when its answers are tokenised as the tokenizer does."""
    policy, tokenizer = tiny

    class Gym:
        device = "cpu"

        def evaluate(self, jobs, progress=False):
            return [Verdict(status="correct", correct=True, speedup=1.26, coverage=0.5) for _ in jobs]

    task = toy.make("train", 0, 3, "cpu").task
    settings = {"samples": 1, "turns": 2, "style": "brief", "max_prompt": 200, "max_response": 9, "context": 400}
    ((trajectory,),) = rollout(policy.eval(), tokenizer, [task], Gym(), seed=1, **settings)
    for turn in trajectory.turns:  # as if each answer had ended, and had been spelled as the tokenizer would
        turn.text = "return x"
        turn.ids = [*tokenizer("return x").input_ids, END]
    row, wanted = sft.trajectory_row(tokenizer, trajectory, "brief", 400)
    header = len(trajectory.turns[0].prompt_ids)
    assert row[:header] == trajectory.turns[0].prompt_ids
    assert row[header : header + len(trajectory.turns[0].ids)] == trajectory.turns[0].ids
    told = tokenizer.decode(row[header + len(trajectory.turns[0].ids) :])
    assert told.startswith("\n<|im_start|>user\ncorrect, speed-up 1.3, coverage 0.5<|im_end|>\n<|im_start|>assistant\n")
    assert sum(wanted) == 2 * len(trajectory.turns[0].ids)


def test_rows_that_do_not_fit_lose_their_last_turns(tiny):
    turns = [Turn([1], [5, END], [0.0, 0.0], text, None, Verdict(status="wrong")) for text in ("one", "two")]
    turns.append(Turn([1], [], [], "", None, None))  # no room when it was sampled
    trajectory = Trajectory(Task("t", "task"), 0, turns)
    whole = sft.trajectory_row(tiny[1], trajectory, "brief", 1000)
    assert tiny[1].decode(whole[0]).endswith("two<|im_end|>")
    first = sft.trajectory_row(tiny[1], trajectory, "brief", len(whole[0]) - 1)
    assert tiny[1].decode(first[0]).endswith("one<|im_end|>") and len(first[0]) < len(whole[0])
    assert sft.trajectory_row(tiny[1], trajectory, "brief", 5) is None


def test_conversations_follow_the_mix():
    task = toy.make("train", 0, 5, "cpu")
    rng = random.Random(0)
    mix = {"broken": 0.5, "lazy": 0.0, "half": 0.0, "fused": 0.5}
    talks = [sft.conversation(task, 3, mix, rng) for _ in range(400)]
    right = [[verdict.correct for _, verdict in talk] for talk in talks]
    # P(right) is 1/2, then 1/2 * 1/2 + 1/2 * (STAY + (1 - STAY) / 2) = 5/8, then 3/8 * 1/2 + 5/8 * 3/4 = 21/32
    for k, expected in enumerate((1 / 2, 5 / 8, 21 / 32)):
        assert sum(r[k] for r in right) / 400 == pytest.approx(expected, abs=0.08)
    assert all(a.startswith("```python\nimport") and a.endswith("```") for talk in talks for a, _ in talk)
    assert not any(v.correct for talk in (sft.conversation(task, 3, {"broken": 1.0}, rng),) for _, v in talk)


def test_what_a_made_up_verdict_says():
    rng = random.Random(0)
    assert sft.made_up_verdict("broken", "x = (", rng).status == "compile_error"
    assert sft.made_up_verdict("broken", "x = 1", rng).status in ("runtime_error", "wrong")
    lazy = sft.made_up_verdict("lazy", "", rng)
    assert lazy.correct and lazy.speedup < 1.2 and lazy.coverage <= 0.6


def test_padding_is_masked_by_length(tiny):
    rows = [([5, 0, END], [0, 1, 1]), ([7], [1])]  # the pad id is a real token in the first row
    ids, mask, wanted = sft.pad_rows(rows, torch.device("cpu"))
    assert ids.tolist() == [[5, 0, END], [7, 0, 0]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert wanted.tolist() == [[0, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize("micro", [1, 2, 4])
def test_a_step_does_not_depend_on_micro_batches(tiny, micro):
    rng = random.Random(1)
    rows = [([START, *(rng.randrange(3, 90) for _ in range(n))], [0] + [1] * n) for n in (3, 9, 1, 6)]
    policy, _ = tiny_policy([], 0)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    by_hand, _ = tiny_policy([], 0)
    scores = torch.cat([token_logprobs(by_hand, torch.tensor([r]), torch.ones(1, len(r)))[0, 1:] for r, _ in rows])
    loss = -scores.mean()  # 19 tokens
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(by_hand.parameters(), 1.0)
    assert norm > 0
    assert sft.train_step(policy, [optimizer], rows, micro, 19) == pytest.approx((loss.item(), norm.item()), abs=1e-5)
    for p, q in zip(policy.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(p, q - 0.1 * q.grad, atol=1e-6, rtol=1e-5)


def test_cold_start_is_deterministic_kept_and_loadable(tmp_path):
    one = sft.cold_start("cpu", tmp_path / "a" / "tiny", seed=3, steps=4, progress=False)
    two = sft.cold_start("cpu", tmp_path / "b", seed=3, steps=4, progress=False)
    weights = [(folder / "model.safetensors").read_bytes() for folder in (one, two)]
    assert weights[0] == weights[1]
    assert (one / "tokenizer.json").read_text() == (two / "tokenizer.json").read_text()
    assert preset_of(str(one)) == "tiny"
    AutoModelForCausalLM.from_pretrained(one)
    when = (one / "config.json").stat().st_mtime_ns
    sft.cold_start("cpu", one, seed=4, steps=4, progress=False)  # it is there already
    assert (one / "config.json").stat().st_mtime_ns == when
    sft.cold_start("cpu", one, seed=4, steps=4, again=True, progress=False)
    assert (one / "model.safetensors").read_bytes() != weights[0]


def test_the_cold_start_learns(tmp_path):
    """Forty steps on two tasks: the loss on a right answer falls far below that of guessing tokens."""
    rng = random.Random(0)
    pool = [toy.make("train", 0, i, "cpu") for i in range(2)]
    policy, tokenizer = tiny_policy(sft.tokenizer_texts(pool, rng), 400)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=3e-3)
    row = sft.encode_row(
        tokenizer, pool[0].task.source, [(sft.answer_text(pool[0].solution("fused", rng)), None)], True
    )
    losses = [sft.train_step(policy, [optimizer], [row], 1, sum(row[1]))[0] for _ in range(40)]
    assert losses[0] > 4 and losses[-1] < 0.5


def test_fine_tuning_on_trajectories(tiny, tmp_path):
    """Only the answers' likelihood is raised; the CLI saves a loadable folder; the tiny policy's ids are its own."""
    save_policy(*tiny, tmp_path / "policy")
    source = toy.make("train", 0, 0, "cpu").task
    turns = [Turn([1], [5, END], [0.0] * 2, "```python\nreturn x\n```", None, Verdict(status="wrong"))] * 2
    save_jsonl(tmp_path / "data.jsonl", [Trajectory(source, i, turns) for i in range(6)])
    flags = ["--model", tmp_path / "policy", "--data", tmp_path / "data.jsonl", "--out", tmp_path / "out"]
    flags += ["--device", "cpu", "--batch", "4", "--micro-batch", "3", "--epochs", "2", "--lr", "1e-3"]
    ran = subprocess.run([sys.executable, ROOT / "sft.py", *flags], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "6 of 6 trajectories" in ran.stdout
    row, wanted = sft.trajectory_row(tiny[1], Trajectory(source, 0, turns), "brief", 1000)
    ids, mask, wanted = sft.pad_rows([(row, wanted)], torch.device("cpu"))
    tuned = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    before, after = (token_logprobs(m, ids, mask, wanted=wanted).sum().item() for m in (tiny[0], tuned))
    assert after > before + 5


def turn(text: str, verdict: Verdict) -> Turn:
    return Turn([1], [5, END], [0.0, 0.0], text, None, verdict)


def right(speedup: float) -> Verdict:
    return Verdict(status="correct", correct=True, speedup=speedup)


def test_which_turns_improved(tiny):
    verdicts = [
        Verdict(status="wrong"),
        right(1.5),
        right(1.2),
        Verdict(status="hack", speedup=9.0),
        right(1.5),
        right(2.0),
    ]
    turns = [turn(f"a{k}", verdict) for k, verdict in enumerate(verdicts)]
    assert sft.improved(turns) == [False, True, False, False, False, True]
    ids, wanted = sft.trajectory_row(
        tiny[1], Trajectory(Task("t", "task"), 0, turns), "brief", 1000, improved_only=True
    )
    assert tiny[1].decode([i for i, w in zip(ids, wanted, strict=True) if w]) == "a1<|im_end|>a5<|im_end|>"
    assert tiny[1].decode(ids).count("<|im_start|>assistant") == 6  # the others are read
    assert sft.trajectory_row(tiny[1], Trajectory(Task("t", "task"), 0, turns[:1]), "brief", 1000, True) is None


def coldstart(path: Path, rows: int, **changes) -> None:
    """A parquet in the schema of hkust-nlp/drkernel-coldstart-8k, five rounds each."""
    records = []
    for n in range(rows):
        texts = [
            x
            for k in range(5)
            for x in (("user", f"task {n}" if k == 0 else f"verdict {k}"), ("assistant", f"answer {k}"))
        ]
        record = {
            "messages": [{"role": role, "content": text} for role, text in texts],
            "uuid": n,
            "entry_point": "Model",
        }
        record |= {"repo_name": "r", "module_name": "m", "final_speedup": 1.7, "num_rounds": 5, "best_round": 4}
        record |= {"original_python_code": f"class Model: x = {n}", "timestamp": "t", "conversion_mode": "c"}
        records.append(record | {"enable_thinking": False} | changes)
    path.parent.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)


def test_parquet_of_the_cold_start(tiny, tmp_path):
    _, tokenizer = tiny
    coldstart(tmp_path / "data" / "a.parquet", 2)
    coldstart(tmp_path / "data" / "b.parquet", 1, final_speedup=float("nan"))
    args = sft.Args(context=1000)
    rows = sft.load_rows(tmp_path / "data", tokenizer, "full", args)
    assert [task for task, _ in rows] == ["class Model: x = 0", "class Model: x = 1", "class Model: x = 0"]
    ids, wanted = rows[1][1]
    said = "".join(f"answer {k}<|im_end|>" for k in range(5))
    assert tokenizer.decode([i for i, w in zip(ids, wanted, strict=True) if w]) == said
    start = "<|im_start|>user\ntask 1<|im_end|>\n<|im_start|>assistant\nanswer 0<|im_end|>\n<|im_start|>user\nverdict 1<|im_end|>"
    assert tokenizer.decode(list(ids)).startswith(start)
    best = sft.load_rows(tmp_path / "data", tokenizer, "full", replace(args, improved_only=True))
    ids, wanted = best[0][1]
    assert tokenizer.decode([i for i, w in zip(ids, wanted, strict=True) if w]) == "answer 3<|im_end|>"
    assert best[2][1] is None  # nothing right in it
    coldstart(
        tmp_path / "bad.parquet", 1, messages=[{"role": "system", "content": "x"}, {"role": "user", "content": "y"}]
    )
    with pytest.raises(TrajectoryError, match="bad.parquet, row 0.*system, user"):
        sft.load_rows(tmp_path / "bad.parquet", tokenizer, "full", args)
    (tmp_path / "no.parquet").write_text("x")
    with pytest.raises(TrajectoryError, match="no.parquet is no parquet"):
        sft.load_rows(tmp_path / "no.parquet", tokenizer, "full", args)


def test_a_task_is_trained_on_or_held_out():
    sides = [sft.held_out(f"task {n}", 0.25) for n in range(4000)]
    assert sum(sides) / 4000 == pytest.approx(0.25, abs=0.03)
    assert not any(sft.held_out(f"task {n}", 0.0) for n in range(100))


SMALL = {
    "device": "cpu",
    "batch": 4,
    "micro_batch": 2,
    "epochs": 2,
    "lr": 1e-3,
    "val_share": 0.3,
    "eval_every": 2,
    "save_every": 3,
}


def tune(folder: Path, **changes) -> None:
    sft.main(sft.Args(**(SMALL | {"model": str(folder / "policy"), "data": folder / "data.parquet"} | changes)))


@pytest.fixture(scope="module")
def tuned(tiny, tmp_path_factory):
    """A policy, data, and an uninterrupted run for the others to compare with."""
    folder = tmp_path_factory.mktemp("tune")
    save_policy(*tiny, folder / "policy")
    coldstart(folder / "data.parquet", 14)
    tune(folder, out=folder / "whole")
    return folder


def lines_of(out: Path) -> list[dict]:
    return [{k: v for k, v in line.items() if k != "seconds"} for line in logbook.read_metrics(out)[1:]]


def weights_of(out: Path) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in AutoModelForCausalLM.from_pretrained(out).parameters()])


def test_stopped_and_resumed_equals_uninterrupted(tuned, tmp_path, monkeypatch, tiny):
    real, out = logbook.append, tmp_path / "out"

    def stop_in_step_2(path, line):
        real(path, line)
        if line.get("step") == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(logbook, "append", stop_in_step_2)
    tune(tuned, out=out)
    monkeypatch.undo()
    assert [folder.name for folder in checkpoints(out)] == ["step_000002"] and not (out / "config.json").exists()
    sft.main(sft.parse(["--resume", str(out)]))
    lines = lines_of(out)
    assert lines == lines_of(tuned / "whole") and len(lines) >= 4 and not (out / "checkpoints").exists()
    assert torch.equal(weights_of(out), weights_of(tuned / "whole"))
    assert lines[-1]["val_loss"] < lines[1]["val_loss"]
    rows = [
        row
        for task, row in sft.load_rows(tuned / "data.parquet", tiny[1], "brief", sft.Args())
        if sft.held_out(task, 0.3)
    ]
    model, nll, tokens = AutoModelForCausalLM.from_pretrained(out), 0.0, 0
    for ids, wanted in rows:
        logp = model(torch.tensor([[*ids]])).logits[0].log_softmax(-1)
        nll -= sum(logp[t - 1, ids[t]].item() for t in range(1, len(ids)) if wanted[t])
        tokens += sum(wanted)
    assert lines[-1]["val_loss"] == pytest.approx(nll / tokens, rel=1e-4)
    with pytest.raises(RunError, match="finished model"):
        tune(tuned, out=out)


def test_two_processes_tune_as_one(tuned, tmp_path):
    two = ranks.start(2, tune_to, tuned, tmp_path / "out", log=tmp_path)
    assert ranks.finish(two) == [0, 0], (tmp_path / "0.txt").read_text()
    for line, other in zip(lines_of(tmp_path / "out"), lines_of(tuned / "whole"), strict=True):
        assert line == pytest.approx(other, rel=1e-4)
    assert (weights_of(tmp_path / "out") - weights_of(tuned / "whole")).abs().max() < 1e-4


def tune_to(folder: Path, out: Path) -> None:
    tune(folder, out=out)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"model": "qwen-8b"}, ModelError, "needs trajectories.*--data"),
        ({"data": "{tmp}/none.jsonl", "model": "{tmp}/policy"}, TrajectoryError, "no such file"),
        ({"data": "{tmp}/empty.jsonl", "model": "{tmp}/policy"}, TrajectoryError, "no answer that fits"),
        ({"data": "{tmp}/broken.jsonl", "model": "{tmp}/policy"}, TrajectoryError, "line 1"),
        ({"data": "{tmp}/empty.jsonl", "model": "nothing"}, ModelError, "Unknown model"),
    ],
)
def test_bad_input_is_named(tiny, tmp_path, changes, error, says):
    save_policy(*tiny, tmp_path / "policy")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "broken.jsonl").write_text("{\n")
    changes = {k: type(sft.Args.__dict__.get(k) or Path())(v.format(tmp=tmp_path)) for k, v in changes.items()}
    with pytest.raises(error, match=says):
        sft.main(sft.Args(device="cpu", out=tmp_path / "out", **changes))
