"""The benchmarks run; their figures are not tested."""

import re
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent


def bench(*words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "bench.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_toy_counts_what_it_judged():
    done = bench("toy", "--tasks", "2", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^8 evaluations in [0-9.]+ s: [0-9.]+ per second on simulated H200$", done.stdout, re.M)
    counts = dict(re.findall(r"^(\w+) +correct (\d)/2", done.stdout, re.M))
    assert counts == {"broken": "0", "lazy": "2", "half": "2", "fused": "2"}


def test_contexts_need_a_gpu():
    done = bench("contexts", "--parallel", "2", "--total", "2")
    if torch.cuda.is_available():
        assert done.stdout.count("contexts per second") == 2
    else:
        assert done.returncode == 1 and "bench.py: no contexts here" in done.stderr and "Traceback" not in done.stderr
