"""Baseline files in KernelBench's layout."""

import json
from pathlib import Path

import pytest
import torch

import baselines
from baselines import Args, baseline_file, main

KERNELS = Path(__file__).resolve().parent / "kernels"
FIELDS = {"mean", "std", "min", "max", "num_trials", "hardware", "device"}  # of KernelBench's own files


def test_the_layout():
    one = {"mean": 2.0, "median": 1.9, "std": 0.1, "min": 1.0, "max": 3.0, "num_trials": 9}
    data = baseline_file({"level1/19_ReLU": one, "level1/2_X": one, "level2/2_X": one, "mine": one}, "H200", "cuda:0")
    assert {level: list(files) for level, files in data.items()} == {
        "level1": ["19_ReLU.py", "2_X.py"],
        "level2": ["2_X.py"],
        "tasks": ["mine.py"],
    }
    assert data["level2"]["2_X.py"] == one | {"hardware": "H200", "device": "cuda:0"}
    assert set(data["tasks"]["mine.py"]) == FIELDS | {"median"}


class Idle:
    """A gym that must not be asked."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def as_completed(self, jobs):
        assert not jobs, "measured again"
        return iter(())


def test_simulated_times_by_hand_kept_and_measured_anew(tmp_path, monkeypatch, capsys):
    """The task of tests/kernels on an H200 of 4.3e12 byte/s and 4 us a launch, in which a byte counts 200 times: see test_judge.py."""
    monkeypatch.setenv("DRKERNEL_CACHE", str(tmp_path / "cache"))
    out, task = tmp_path / "new" / "baseline.json", KERNELS / "task.py"
    (tmp_path / "bad.py").write_text(task.read_text().replace("torch.tanh(x)", "torch.tanh(x, 3, 4)"))
    assert main(Args((str(task), str(tmp_path / "bad.py")), out=out, device="cpu", workers=1)) == 1
    one, two = (4e-3 + 1e3 * 200 * tensors * 16 * 300 * 4 / 4.3e12 for tensors in (2, 3))
    data = json.loads(out.read_text())
    assert set(data) == {"tasks"} and set(data["tasks"]) == {"task.py"}
    row = data["tasks"]["task.py"]
    assert row["mean"] == pytest.approx(3 * one + two) and set(row) >= FIELDS and row["hardware"] == "simulated H200"
    assert list(out.parent.iterdir()) == [out]
    text = capsys.readouterr().out
    assert "1 of 2 tasks" in text and "0 of them from" in text and "speed-up 1.000 to 1.000" in text
    assert "without a time: bad: gym_error: the task bad fails" in text
    out.unlink()
    monkeypatch.setattr(baselines, "Gym", Idle)
    assert main(Args((str(task),), out=out, device="cpu")) == 0
    assert json.loads(out.read_text()) == data and "1 of them from" in capsys.readouterr().out
    for changed in ({"fresh": True}, {"precision": "bf16"}, {"tf32": True}):
        with pytest.raises(AssertionError, match="measured again"):
            main(Args((str(task),), out=out, device="cpu", **changed))


def test_mistakes_get_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert main(Args(("level9",), out=tmp_path / "x.json", device="cpu")) == 2
    assert main(Args(("level1/1",), out=tmp_path / "x.json", device="cpu", baseline="compile")) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "Unknown task 'level9'" in lines[0] and "baseline compile needs a GPU" in lines[1]
