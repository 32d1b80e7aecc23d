"""Rows and their masks, the training step, the cold start, fine-tuning on trajectories."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

import sft
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


def test_muon_moves_a_matrix_along_its_singular_vectors():
    """Its singular values end near 1 (by hand: one step of the quintic takes 1 to 0.701, five take it to 0.6964); the steps are those of torch's Muon."""
    assert torch.allclose(sft.orthogonal(torch.tensor([[3.0]])), torch.tensor([[0.6964]]), atol=1e-4)
    left = torch.linalg.qr(torch.randn(60, 40))[0]
    right = torch.linalg.qr(torch.randn(40, 40))[0]
    values = torch.logspace(0, -2.4, 40)
    for x in (left * values @ right.T, (left * values @ right.T).T):
        found = (
            left.T @ (y := sft.orthogonal(x)) @ right if x.shape[0] == 60 else right.T @ (y := sft.orthogonal(x)) @ left
        )
        assert y.shape == x.shape and (found - torch.diag(found.diag())).abs().max() < 1e-4
        assert 0.65 < found.diag().min() and found.diag().max() < 1.25
    mine = [torch.randn(20, 12, requires_grad=True), torch.randn(12, 12, requires_grad=True)]
    twins = [m.detach().clone().requires_grad_() for m in mine]
    ours = sft.Muon(mine, 0.01)
    theirs = torch.optim.Muon(twins, lr=0.01, weight_decay=0.01, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        before = [m.detach().clone() for m in mine]
        for m, t in zip(mine, twins, strict=True):
            m.grad = torch.randn_like(m)
            t.grad = m.grad.clone()
        ours.step()
        theirs.step()
        for m, t, b in zip(mine, twins, before, strict=True):
            assert (m - t).norm() < 0.05 * (m - b).norm()  # theirs iterates in bfloat16


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
    assert sft.train_step(policy, [optimizer], rows, micro, 19) == pytest.approx(loss.item(), abs=1e-5)
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
    losses = [sft.train_step(policy, [optimizer], [row], 1, sum(row[1])) for _ in range(40)]
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


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"model": "qwen-8b"}, ModelError, "needs trajectories.*--data"),
        ({"data": "{tmp}/none.jsonl"}, OSError, "No such file"),
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
        sft.main(sft.Args(device="cpu", **changes))
