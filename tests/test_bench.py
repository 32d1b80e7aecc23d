"""The benchmarks run; their figures are not tested. What the red team and chaos say of evaluators is."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

import bench as bench_module
import chaos
import overhead
import peers
from bench import Redteam, credited, refused, sample, table
from kernelbench import Task

ROOT = Path(__file__).resolve().parent.parent
KERNEL = {path.stem: path.read_text() for path in (ROOT / "tests" / "kernels").glob("*.py")}


def bench(*words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "bench.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_toy_counts_what_it_judged(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench.py", "toy", "--tasks", "2", "--device", "cpu"])
    bench_module.main()
    out = capsys.readouterr().out
    assert re.search(r"^8 evaluations in [0-9.]+ s: [0-9.]+ per second on simulated H200$", out, re.M)
    counts = dict(re.findall(r"^(\w+) +correct (\d)/2", out, re.M))
    assert counts == {"broken": "0", "lazy": "2", "half": "2", "fused": "2"}


def test_contexts_need_a_gpu(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench.py", "contexts", "--parallel", "2", "--total", "2"])
    if torch.cuda.is_available():
        bench_module.main()
        assert capsys.readouterr().out.count("contexts per second") == 2
    else:
        with pytest.raises(SystemExit, match="bench.py: no contexts here"):
            bench_module.main()


def test_what_a_process_costs_by_hand():
    """Kernels that the two ways judge differently do not count and are named."""
    rows = {}
    for name, seconds in {"a": (2.0, 1.5), "b": (4.0, 1.0), "c": (1.0, 0.75)}.items():
        for cached in (False, True):
            rows["process", name, cached] = seconds[0], "correct"
            rows["thread", name, cached] = seconds[1], "wrong" if (name, cached) == ("b", True) else "correct"
    lines = [line.split() for line in overhead.report(rows, ["a", "b", "c"]).splitlines()]
    assert lines[1][-5:] == ["3", "2.00", "1.00", "0.50", "3.00"]
    assert lines[2][-5:] == ["2", "1.50", "1.12", "0.38", "0.50"]
    assert [" ".join(line) for line in lines[3:]] == ["b: correct in a process, wrong in a thread"]
    half = {key: row for key, row in rows.items() if key[0] == "process"}  # after a Ctrl-C
    assert overhead.report(half, ["a", "b", "c"]).splitlines()[2] == "   3 in a process: 2.00"


@pytest.mark.gpu
def test_a_thread_judges_as_a_process_does(capsys):
    overhead.Overhead(limit=2).run()
    out = capsys.readouterr().out
    assert len(re.findall(r"^(?:the|with the) reference .* 2  ", out, re.M)) == 2 and "in a thread" not in out


# Chaos


def test_chaos_ends_every_job_in_one_verdict_and_leaves_nothing():
    done = bench("chaos", "--n", "20", "--device", "cpu", "--call-s", "2")
    off = [line for line in done.stdout.splitlines() if line.startswith("OFF: ")]
    assert not off and done.stdout.startswith("20 evaluations in "), done.stdout + done.stderr
    assert "1 referees killed; 1 zygotes killed" in done.stdout or "2 referees killed" in done.stdout
    rows = re.findall(r"^([a-z ]+?) +(\d+) +0  ([a-z_]+ \d.*)$", done.stdout, re.M)
    assert [kind for kind, _, _ in rows] == list(chaos.KINDS) and sum(int(n) for _, n, _ in rows) == 20


def test_chaos_sees_what_is_left_over(tmp_path):
    before = chaos.remains("mark", str(tmp_path))
    assert chaos.more(before, before) == []
    child = subprocess.Popen(["sleep", "60"], env={chaos.MARK: "mark", "PATH": "/usr/bin:/bin"})
    with open(tmp_path / "drkernel-left", "w"):
        after = chaos.remains("mark", str(tmp_path))
    child.kill(), child.wait()
    said = [text.partition(":")[0] for text in chaos.more(before, after)]
    assert said == ["processes", "file descriptors", "temporary folders"] and any(
        "sleep 60" in process for process in after["processes"]
    )
    assert chaos.more({"GPU memory, MiB": 100}, {"GPU memory, MiB": 164}) == []
    assert chaos.more({"GPU memory, MiB": 100}, {"GPU memory, MiB": 165}) == ["GPU memory, MiB: 165 instead of 100"]


# The red team


def case(name="attacks/x", expect="wrong", speedup_at_most=None, coverage_at_most=None, code="", **more):
    kind, task = name.split("/")[0], Task("task", KERNEL["task"])
    about = {
        "name": name,
        "kind": kind,
        "layer": "clock",
        "expect": {expect},
        "task": task,
        "code": code,
        "device": "any",
    }
    bounds = {"speedup_at_most": speedup_at_most, "coverage_at_most": coverage_at_most}
    judged = {
        "runs_on": lambda device: True,
        "verdict_is_right": lambda v: None if v.status == expect else f"{v.status}!",
    }
    return SimpleNamespace(**about | bounds | judged | more)


def said(correct=True, speedup=None, coverage=None):
    return {"correct": correct, "speedup": speedup, "coverage": coverage}


@pytest.mark.parametrize(
    "about, row, credit, refusal",
    [
        (case(), said(), True, False),
        (case(), said(False), False, False),
        (case("honest/x", "correct"), said(), False, False),
        (case("honest/x", "correct"), said(False), False, True),
        (case("lazy/x", "correct", speedup_at_most=1.1), said(False), False, True),
        (case("lazy/x", "correct", speedup_at_most=1.1), said(speedup=1.2), True, False),
        (case("lazy/x", "correct", speedup_at_most=1.1), said(speedup=1.0), False, False),
        (case(expect="correct", coverage_at_most=0.1), said(speedup=9.0, coverage=0.2), True, False),
        (case(expect="correct", coverage_at_most=0.1), said(speedup=9.0), None, False),
        (case(expect="correct", coverage_at_most=0.1, speedup_at_most=1.1), said(speedup=9.0), True, False),
        (case("lazy/x", "correct"), said(speedup=9.0), False, False),
    ],
)
def test_credit_and_refusal(about, row, credit, refusal):
    assert (credited(about, row), refused(about, row)) == (credit, refusal)


def test_a_sample_takes_kinds_and_layers_in_turn():
    cases = [case(f"{kind}/{i}", layer=layer) for kind in ("attacks", "honest") for layer in "abc" for i in range(9)]
    some = sample(cases, 12, 0)
    assert sorted((c.kind, c.layer) for c in some) == [
        (k, l) for k in ("attacks", "honest") for l in "abc" for _ in range(2)
    ]
    assert some == sample(cases, 12, 0) != sample(cases, 12, 1) and len(sample(cases, None, 0)) == len(cases)


def test_the_table_has_a_group_of_columns_for_each_evaluator():
    row = {
        "evaluator": "ours",
        "kind": "attacks",
        "layer": "clock",
        "credited": False,
        "refused": False,
        "seconds": 1.0,
    }
    rows = [
        row,
        row | {"kind": "honest"},
        row | {"layer": "replay", "credited": True},
        row | {"evaluator": "kernelgym", "credited": None},
    ]
    lines = [re.split(r"  +", line) for line in table(rows).splitlines()]
    assert lines[0][:4] == ["layer", "ours: attacks credited", "lazy overpaid", "honest refused"]
    assert lines[1] == ["clock", "0/1", "-", "0/1", "0/1 (1 n/a)", "-", "-"]
    assert lines[2][:2] == ["replay", "1/1"] and lines[3][:2] == ["all", "1/2"] and lines[4][:2] == ["s", "1.00"]


def test_the_red_team_is_judged_once_and_resumed(tmp_path, monkeypatch, capsys):
    corpus = ModuleType("redteam")
    mine = [case("honest/fused", "correct", code=KERNEL["fused"]), case("attacks/wrong", code=KERNEL["wrong"])]
    mine += [
        case("attacks/missed", "hack", code=KERNEL["lazy"]),
        case("lazy/x", "correct", coverage_at_most=0.3, code=KERNEL["decoy"]),
    ]
    corpus.load = lambda: mine
    monkeypatch.setitem(sys.modules, "redteam", corpus)
    rows, summary = tmp_path / "rows.jsonl", tmp_path / "all.json"
    Redteam(device="cpu", rows=rows, json=summary, workers=2).run()
    text = capsys.readouterr().out
    assert "4 of 4 cases on cpu" in text and re.search(r"^all +1/2 +0/1 +1/2$", text, re.M) and "ours: correct!" in text
    every = json.loads(summary.read_text())["rows"]
    assert {row["case"]: (row["status"], row["credited"], row["refused"]) for row in every} == {
        "honest/fused": ("correct", False, False),
        "attacks/wrong": ("wrong", False, False),
        "attacks/missed": ("correct", True, False),
        "lazy/x": ("hack", False, True),
    }
    rows.write_text(rows.read_text() + '{"evaluator": "ou')  # the end of an interrupted run
    monkeypatch.setattr(bench_module, "Gym", None)  # nothing is judged again
    Redteam(device="cpu", rows=rows).run()
    assert re.search(r"^all +1/2 +0/1 +1/2$", capsys.readouterr().out, re.M)
    with pytest.raises(SystemExit, match="can only be run on a GPU"):
        Redteam(device="cpu", kernelgym=tmp_path).run()


# Stand-ins for the peers' checkouts: the same files and entry points, another content.
KERNELBENCH = {
    "src/kernelbench/__init__.py": "raise ImportError('not to be run')",
    "src/kernelbench/utils.py": "from litellm import completion\nfrom dotenv import load_dotenv\nload_dotenv()",
    "src/kernelbench/kernel_static_checker.py": "def validate_kernel_static(code, backend, precision): return 'bad' not in code, [], []",
    "src/kernelbench/eval.py": """
import requests, torch
from pydantic import BaseModel
class Result(BaseModel):
    compiled: bool = True
    correctness: bool = False
    metadata: dict = {}
    runtime: float = -1.0
    ref_runtime: float = -1.0
def eval_kernel_against_ref(ref, new, *, num_correct_trials, num_perf_trials, measure_performance, timing_method, device, backend, precision):
    assert (num_correct_trials, num_perf_trials, measure_performance, backend, precision) == (5, 100, True, "triton", torch.float32)
    print("noise")
    if "retry" in new: return None
    return Result(correctness="fast" in new, runtime=2.0, ref_runtime=3.0)
""",
}
KERNELGYM = {
    "kernelgym/__init__.py": "raise ImportError('not to be run')",
    "kernelgym/backend/__init__.py": "def get_backend(name): return name",
    "kernelgym/toolkit/__init__.py": "",
    "kernelgym/toolkit/kernelbench/__init__.py": "",
    "kernelgym/toolkit/kernelbench/toolkit.py": """
import os, time
from pydantic_settings import BaseSettings
class KernelBenchToolkit:
    def evaluate(self, task, backend):
        if "hang" in task.get("kernel_code", ""): os.fork(), time.sleep(1000)
        if "exit" in task.get("kernel_code", ""): os._exit(3)
        assert backend == "kernelbench" and task["num_perf_trials"] == 100
        if task["task_type"] == "reference_timing":
            return {"status": "completed", "reference_runtime": 3.0}
        assert task["num_correct_trials"] == 5
        spent = {"custom_kernel_cuda_time_in_profiling_us": 1.0, "total_kernel_run_time_in_profiling_us": 4.0}
        said = {"compiled": True, "correctness": True, "decoy_kernel": "decoy" in task["kernel_code"], "kernel_runtime": 2.0}
        return said | {"metadata": spent, "error_message": None}
""",
}  # fmt: skip


def checkout(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return str(folder)


def test_the_peers_are_asked_as_they_ask_themselves(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kernelbench, kernelgym = checkout(tmp_path / "a", KERNELBENCH), checkout(tmp_path / "b", KERNELGYM)

    def opinion(peer, path, code, limit=60.0):
        return peers.opinion(peer, path, "task", code, {}, (5, 100), limit)

    fast = opinion("kernelbench", kernelbench, "fast and bad")
    assert (fast.correct, fast.speedup, fast.coverage, fast.static) == (True, 1.5, None, False) and fast.seconds > 0
    assert fast.ms == 2.0
    assert opinion("kernelbench", kernelbench, "retry").note == "asks for another try"
    assert opinion("kernelgym", kernelgym, "exit").note == "its process ended with 3"
    assert opinion("kernelgym", kernelgym, "hang", 2.0).note == "no answer within 2 s"
    mine = opinion("kernelgym", kernelgym, "kernel")
    assert (mine.correct, mine.speedup, mine.coverage) == (True, 1.5, 0.25)
    decoy = opinion("kernelgym", kernelgym, "decoy")
    assert (decoy.correct, decoy.speedup, decoy.note) == (False, None, "decoy")
    assert peers.ask("kernelgym", kernelgym, {"do": "load"}, 60).correct
    assert "ModuleNotFoundError" in peers.ask("kernelgym", str(tmp_path), {"do": "load"}, 60).note
    left = [words for pid in chaos.parents() if str(tmp_path) in (words := chaos.command(pid))]
    assert not left and not list(tmp_path.glob("peer-*"))
