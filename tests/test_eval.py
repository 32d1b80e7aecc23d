"""Fast@p, best of turns and their errors by hand; the file of results; the command."""

import importlib
import json
import math
import random
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_train import FakeGym

from kernelbench import Task
from kernelbench.judge import Verdict
from model import tiny_policy
from rollout import Trajectory, Turn

evaluation = importlib.import_module("eval")


def line(task, sample, turn, correct, speedup, coverage=0.5, valid=True, hack=None):
    status = "correct" if correct else ("hack" if hack else ("wrong" if valid else "gym_error"))
    figures = {"correct": correct, "speedup": speedup, "coverage": coverage, "status": status, "timing": "simulated"}
    return {"task": task, "sample": sample, "turn": turn, "valid": valid, "hack": hack} | figures


def test_figures_by_hand():
    """Two tasks, one sample each, two turns: a: 1.2x then wrong; b: a hack, then 2.5x."""
    records = [
        line("a", 0, 1, True, 1.2, coverage=0.4),
        line("a", 0, 2, False, 9.0),
        line("b", 0, 1, False, 0.0, hack="decoy"),
        line("b", 0, 2, True, 2.5, coverage=0.8),
    ]
    figures = {name: [m for m, _ in cells] for name, cells in evaluation.summarise(records, 2).items()}
    assert figures["correct"] == [0.5, 0.5, 1.0]
    assert figures["fast@1"] == [0.5, 0.5, 1.0]
    assert figures["fast@1.2"] == [0.5, 0.5, 1.0] and figures["fast_1.2"] == [0.0, 0.5, 0.5]  # strict
    assert figures["fast@2"] == [0.0, 0.5, 0.5]
    assert figures["hack"] == [0.5, 0.0, 0.5]
    assert figures["coverage"] == pytest.approx([0.4, 0.8, 0.6])


def test_faults_of_the_gym_count_nowhere():
    records = [
        line("a", 0, 1, True, 1.5),
        line("a", 0, 2, False, 0.0, valid=False),
        line("b", 0, 1, False, 0.0),
        line("b", 0, 2, False, 0.0),
        line("c", 0, 1, False, 0.0, valid=False),
        line("c", 0, 2, False, 0.0, valid=False),
    ]
    figures = evaluation.summarise(records, 2)
    assert [m for m, _ in figures["correct"]] == [0.5, 0.0, 0.5]
    assert math.isnan(figures["coverage"][1][0])


def test_best_of_turns_twin():
    draw = random.Random(4)
    records = [
        line(f"task {p}", g, k + 1, draw.random() < 0.5, draw.choice([0.5, 1.0, 1.2, 1.5, 2.0, 3.0]))
        for p in range(7)
        for g in range(3)
        for k in range(3)
    ]
    figures = evaluation.summarise(records, 3)
    rollouts = [records[i : i + 3] for i in range(0, len(records), 3)]
    for p in evaluation.THRESHOLDS:
        best = sum(any(r["correct"] and r["speedup"] >= p for r in turns) for turns in rollouts) / len(rollouts)
        assert figures[f"fast@{p:g}"][3][0] == pytest.approx(best)
        strict = sum(turns[1]["correct"] and turns[1]["speedup"] > p for turns in rollouts) / len(rollouts)
        assert figures[f"fast_{p:g}"][1][0] == pytest.approx(strict)


def test_error_with_one_sample_per_task_is_the_usual_one():
    x = [1.0, 0.0, 0.0, 1.0, 1.0]
    mean, error = evaluation.mean_and_error(np.array(x), np.ones(5, bool), np.array(list("abcde")))
    assert (mean, error) == pytest.approx((0.6, statistics.stdev(x) / math.sqrt(5)))


def test_error_with_samples_that_agree_is_that_of_the_tasks():
    x, tasks = np.array([1.0, 0.0, 1.0]).repeat(8), np.array(list("abc")).repeat(8)
    _, error = evaluation.mean_and_error(x, np.ones(24, bool), tasks)
    assert error == pytest.approx(statistics.stdev([1, 0, 1]) / math.sqrt(3))


def test_record_of_each_kind_of_turn():
    verdict = Verdict("hack", hack="no_own_kernel", message="no own kernel")
    turns = [Turn([1], [2, 3], [0.0, 0.0], "", "code", verdict), Turn([1], [], [], "", None, None)]
    trajectory = Trajectory(Task("t", "source"), 4, turns)
    first, second, third = (evaluation.record(trajectory, k) for k in range(3))
    assert (first["status"], first["hack"], first["tokens"], first["sample"]) == ("hack", "no_own_kernel", 2, 4)
    assert (second["status"], second["valid"], second["correct"]) == ("out_of_context", True, False)
    assert (third["status"], third["valid"], third["turn"]) == ("gym_error", False, 3)


def test_headline_and_table():
    figures = evaluation.summarise([line("a", 0, 1, True, 1.5), line("b", 0, 1, False, 0.0)], 1)
    named = evaluation.headline(figures, 1)
    assert named["eval/correct"] == 0.5 and named["eval/correct_se"] == pytest.approx(0.5)
    assert named["eval/fast@1.2"] == 0.5 and named["eval/best/fast@2"] == 0.0
    assert named["eval/coverage_se"] is None  # of one correct turn
    text = evaluation.table(figures, 1)
    assert "turn 1" in text and "best of 1" in text and "0.500 ± 0.500" in text


# --- The command


@pytest.fixture
def command(monkeypatch):
    """eval.py in this process, with a fake gym and a small policy; returns the number of judged kernels."""

    def run(*argv, verdict=None):
        gym = FakeGym(verdict=verdict)
        gym.jobs = []
        real = gym.evaluate
        gym.evaluate = lambda jobs, progress=False: gym.jobs.extend(jobs) or real(jobs)
        monkeypatch.setattr(evaluation, "Gym", lambda **_: gym)
        monkeypatch.setattr(evaluation, "load_policy", lambda *_, **__: tiny_policy([], hidden=32, layers=2, heads=2))
        monkeypatch.setattr(sys, "argv", ["eval.py", *map(str, argv)])
        evaluation.main()
        return gym.jobs

    return run


QUICK = "--model tiny --device cpu --tasks toy/test:5 --turns 2 --max-response 3 --chunk 2".split()


def test_one_line_per_turn_and_resume(command, tmp_path, capsys):
    out = tmp_path / "eval.jsonl"
    assert len(command(*QUICK, "--out", out)) == 10
    assert "best of 2" in capsys.readouterr().out
    whole = out.read_text()
    lines = [json.loads(text) for text in whole.splitlines()]
    assert len(lines) == 1 + 5 * 2 and [r["turn"] for r in lines[1:5]] == [1, 2, 1, 2]
    assert command(*QUICK, "--out", out) == []  # finished
    out.write_text(whole[: whole.index('"toy/test/3"') + 20])  # a kill in the middle of the second chunk
    assert len(command(*QUICK, "--out", out)) == 6
    assert out.read_text() == whole


def test_files_that_are_not_this_evaluation(command, tmp_path):
    out = tmp_path / "eval.jsonl"
    command(*QUICK, "--out", out)
    with pytest.raises(SystemExit, match="another evaluation"):
        command(*QUICK, "--out", out, "--seed", "9")
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:2] + ["{half\n"] + lines[3:]))
    with pytest.raises(SystemExit, match="line 3"):
        command(*QUICK, "--out", out)


def test_reference_is_judged_against_itself(command, capsys):
    verdict = Verdict("correct", correct=True, speedup=1.0, timing="simulated")
    jobs = command("--model", "reference", "--tasks", "toy/test:3", "--device", "cpu", verdict=verdict)
    assert len(jobs) == 3 and all(job.task.source in job.code and "class ModelNew(Model)" in job.code for job in jobs)
    assert "simulated" in capsys.readouterr().out


def test_bad_input(command, tmp_path):
    with pytest.raises(SystemExit, match="level9"):
        command("--model", "tiny", "--tasks", "level9", "--device", "cpu")
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match="--out"):
        command(*QUICK, "--out", tmp_path / "file" / "eval.jsonl")


def test_the_real_command(tmp_path):
    """A task against itself in the real gym: correct, and 1.00."""
    root = Path(__file__).resolve().parents[1]
    out = tmp_path / "eval.jsonl"
    argv = ["--model", "reference", "--tasks", "toy/test:2", "--device", "cpu", "--out", str(out)]
    subprocess.run([sys.executable, str(root / "eval.py"), *argv], check=True, timeout=120, cwd=tmp_path)
    records = [json.loads(text) for text in out.read_text().splitlines()[1:]]
    assert [r["status"] for r in records] == ["correct"] * 2
    assert [r["speedup"] for r in records] == pytest.approx([1.0, 1.0], abs=0.01)
