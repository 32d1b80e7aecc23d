"""The arithmetic of `bench.py gym` and `bench.py timing`, and that what they submit is what they take it for."""

import json
import re

import pytest

import pace
from gym import Gym, Job
from kernelbench import Task, load_tasks
from kernelbench.judge import Verdict
from pace import KNOWN, Pace, Timing, candidate, credited, figures, kept, spread

PAIR = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x.sigmoid(), x.argmax(0)

def get_inputs():
    return [torch.randn(8, 30)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_what_is_submitted(device):
    """Candidates for the throughput are right and take the whole way; known kernels have the coverage that they are known for."""
    tasks = [*load_tasks("level1/1", device=device), Task("pair", PAIR)]
    jobs = [Job(task, candidate(task, n)) for task in tasks for n in range(2)] + [Job(*KNOWN[name]) for name in KNOWN]
    assert len({job.code for job in jobs}) == len(jobs)
    with Gym(device, workers=2) as gym:
        *plain, own, gemm, padded = gym.evaluate(jobs)
    assert [v.status for v in (*plain, own, gemm, padded)] == ["correct"] * 7
    assert all(
        v.seconds["knockout"] > 0 and {k["name"] for k in v.kernels if k["own"]} == {"double_kernel"} for v in plain
    )
    assert own.coverage == own.coverage_raw == 1
    assert 0 < gemm.coverage == gemm.coverage_raw < 1  # the chain is faster than the operators that it replaces
    assert padded.coverage_raw > gemm.coverage_raw and padded.coverage < padded.coverage_raw
    assert all(credited(v) == pytest.approx(v.coverage, rel=1e-6) for v in (own, gemm, padded))


def test_credit_by_hand():
    """Own 6, library 2, reference 5: 3 of 8; a reference of 10 lets all 6 count."""
    rows = [{"ms": 2.0, "own": True}, {"ms": 4.0, "own": True}, {"ms": 2.0, "own": False}]
    assert credited(Verdict(kernels=rows, reference_kernels=[{"ms": 5.0}])) == 3 / 8
    assert credited(Verdict(kernels=rows, reference_kernels=[{"ms": 4.0}, {"ms": 6.0}])) == 6 / 8
    assert credited(Verdict(kernels=rows, reference_kernels=[{"ms": 1.0}])) == 0


def test_figures_by_hand():
    def row(task, ms, speedup, ci, status="correct", **clock):
        return dict(
            task=task,
            ms=ms,
            speedup=speedup,
            ci=ci,
            status=status,
            reference_ms=ms and ms * speedup,
            clock=clock,
            seconds=2.0,
        )

    rows = [
        row("long", 1.00, 1.00, [0.99, 1.01]),
        row("long", 1.02, 0.98, [0.97, 0.99], throttled=["power cap"]),
        row("long", 1.01, 1.005, [1.0, 1.02], contended=True),
        row("short", 0.010, 1.3, [1.2, 1.4]),
        row("short", 0.010, 1.0, [0.9, 1.1]),
        row("bad", None, None, None, status="gym_error"),
    ]
    said = dict(figures(rows))
    assert said["judged correct"] == "83.3% (5 of 6)" and said["above 20 us"] == "60.0% (3 of 5)"
    assert said["speed-up within 0.99 to 1.01"] == "66.7% (2 of 3)"
    assert said["largest deviation of a speed-up from 1"] == "2.00%"
    assert said["1 inside the stated interval"] == "66.7% (2 of 3)" and said["median width of the interval"] == "2.00%"
    assert said["CV of a kernel's time over the rounds, median"] == "0.50%"  # of 0.01 / 1.01 and 0
    assert said["   largest"] == "0.99%"
    assert said["throttled while timed"] == said["somebody else used the GPU"] == "16.7% (1 of 6)"
    assert said["seconds of an evaluation, median"] == "2.00"
    none = dict(figures([rows[-1]]))
    assert none["speed-up within 0.99 to 1.01"] == none["1 inside the stated interval"] == "-"


def test_tasks_are_taken_evenly():
    assert (
        spread(list(range(10)), 3) == [0, 3, 6]
        and spread([1, 2], 5) == [1, 2]
        and spread(list(range(6)), 6) == list(range(6))
    )


class Stand:
    """A gym that finds everything right, at 1 ms, and counts what it judged."""

    judged = 0

    def __init__(self, *_, **__):
        self.seats = [None]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def evaluate(self, jobs, progress=False):
        Stand.judged += len(jobs)
        row = {"name": "k", "ms": 1.0, "share": 1.0, "launches": 1, "own": True}
        fields = {"kernel_ms": 1.0, "reference_ms": 1.0, "speedup_ci": [0.99, 1.01], "speedup": 1.0, "coverage": 1.0}
        fields |= {"kernels": [row], "reference_kernels": [row], "seconds": {"load": 0.5, "total": 1.0}}
        return [Verdict("correct", True, device="a stand-in", **fields) for _ in jobs]

    def as_completed(self, jobs):
        yield from enumerate(self.evaluate(jobs))


def test_interrupted_runs_go_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pace, "Gym", Stand)
    rows = tmp_path / "rows.jsonl"
    Timing(tasks=("toy/test:4",), device="cpu", rows=rows, rounds=2).run()
    assert len(kept(rows)) == 8 and Stand.judged == 8 + 3  # and the known kernels
    lines = rows.read_text().splitlines()
    rows.write_text("\n".join(lines[:6]) + "\n" + lines[6][:40])
    Stand.judged = 0
    Timing(tasks=("toy/test:4",), device="cpu", rows=rows, rounds=2).run()
    assert Stand.judged == 2 + 3 and len(kept(rows)) == 8
    text = capsys.readouterr().out
    assert text.count("ours: 4 tasks against themselves, 2 times, cpu") == 2 and "100.0% (8 of 8)" in text
    Stand.judged, cold = 0, tmp_path / "cold.jsonl"
    for judged in (2 * 2 + 1 + 6, 1 + 6):  # two cold tasks with a next one; a call for the referees; 2 x 3 candidates
        Stand.judged = 0
        Pace(tasks=("toy/test:4",), limit=2, candidates=3, device="cpu", rows=cold).run()
        assert Stand.judged == judged and len(kept(cold)) == 2
    text = capsys.readouterr().out
    assert re.search(
        r"6 candidates, 3 of each of 2 tasks, 6 correct, in [0-9.]+ s on 1 x a stand-in: \d+ right evaluations", text
    )
    assert all(json.loads(line)["correct"] for line in cold.read_text().splitlines())


def test_other_evaluators_need_a_gpu(tmp_path):
    for bench in (Timing(kernelbench=tmp_path, device="cpu"), Pace(kernelgym=tmp_path, device="cpu")):
        with pytest.raises(SystemExit, match="need"):
            bench.run()
