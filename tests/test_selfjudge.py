"""Tasks judged against themselves: right, degenerate, broken; in one run or in two."""

import json
import math

import pytest

import selfjudge
from selfjudge import SelfJudge, table

TASK = """import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return FORWARD

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return []
"""
FORWARDS = {"1_Right": "torch.softmax(x, -1)", "2_Nothing": "x * 0", "3_Broken": "x.no_such"}


def row(task: str, status: str = "correct", speedup: float = 1.0, message: str = "", **more) -> dict:
    row = {
        "task": task,
        "status": status,
        "speedup": speedup,
        "speedup_ci": None,
        "reference_ms": 1.0,
        "message": message,
    }
    return row | {"memory": {"inputs": 2**30, "outputs": 2**30}, "seconds": {"total": 1.0}, "peak": None} | more


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch, capsys):
    folder, out = tmp_path / "level1", tmp_path / "rows.jsonl"
    folder.mkdir()
    for name, forward in FORWARDS.items():
        (folder / f"{name}.py").write_text(TASK.replace("FORWARD", forward))
    judged, evaluate = [], selfjudge.Gym.as_completed

    def spy(gym, jobs):
        judged.extend(job.task.name for job in jobs)
        return evaluate(gym, jobs)

    monkeypatch.setattr(selfjudge.Gym, "as_completed", spy)
    run = SelfJudge((str(folder),), out, device="cpu", workers=1)
    assert run.run() == 1
    rows = {row["task"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert {name: row["status"] for name, row in rows.items()} == {
        "level1/1_Right": "correct",
        "level1/2_Nothing": "correct",
        "level1/3_Broken": "gym_error",
    }
    lines = out.read_text().splitlines()
    out.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:20])  # killed in mid-line
    first = capsys.readouterr().out
    assert "3 tasks: 2 correct, 1 gym_error" in first and "tell right from wrong: 1: level1/2_Nothing" in first
    assert first.splitlines()[1].startswith("level1/3_Broken")
    run.run()
    assert sorted(judged[:3]) == sorted(rows)
    assert set(judged[3:]) == {json.loads(lines[-1])["task"], "level1/3_Broken"}  # which may be mended
    assert {r["task"]: r["status"] for r in map(json.loads, out.read_text().splitlines())} == {
        n: r["status"] for n, r in rows.items()
    }


def test_the_worst_come_first_and_peaks_are_shares():
    rows = [
        row("right"),
        row("slow", speedup=0.9),
        row("fails", "gym_error", 0.0, "needs 9 GiB"),
        row("fast", speedup=1.2),
    ]
    rows.append(row("large", peak=4.3 * 2**30))
    text = table(rows)
    assert [line.split()[0] for line in text.splitlines()[1:6]] == ["fails", "fast", "slow", "large", "right"]
    assert math.log(1.2) > -math.log(0.9)
    assert "2.15x" in text and "2.15 x (inputs + outputs) at most" in text
    assert "off by more than 3 %: 2: slow, fast" in text


def test_a_folder_that_is_not_there_ends_in_a_sentence(tmp_path):
    with pytest.raises(SystemExit, match="bench.py: There is no file or folder"):
        SelfJudge((str(tmp_path / "none"),), device="cpu").run()
    with pytest.raises(SystemExit, match="there is none here"):
        SelfJudge((str(tmp_path / "none"),), device="cpu", memory=True).run()
