"""The zygote's preparation; what contestants do on command is tested through the judge (test_judge.py)."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernelbench import sandbox

ROOT = Path(__file__).resolve().parent.parent
PREPARE = """
import os, sys
sys.path.insert(0, {root!r})
from kernelbench import contestant, simulate
import torch
torch.set_num_threads(1)
if {device!r} == "cpu":
    simulate.install()
contestant._rehearse({device!r})
before = set(sys.modules)
contestant._rehearse({device!r})
print(len(os.listdir("/proc/self/task")), torch.cuda.is_initialized(), len(set(sys.modules) - before), "torch._dynamo" in before)
from kernelbench import seals
changed = seals.seal()
import torch._inductor, torch._dynamo
print(changed())
"""


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_zygote_is_fit_to_be_forked(device):
    """One thread (a fork takes no other along), CUDA untouched, and what an evaluation imports is there already."""
    script = PREPARE.format(root=str(ROOT), device=device)
    done = subprocess.run(
        [sys.executable, "-c", script], env=sandbox.environment(device), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    threads, started, imported, compiler, changed = done.stdout.split()
    assert (threads, started, imported) == ("1", "False", "0")
    # on a GPU the profiler's first start would import it in every child; elsewhere hardly anybody needs its two seconds, and who imports it tampers with nothing
    assert compiler == str(device == "cuda") and changed == "None"
