"""Dispatch modes that import no Dynamo, and are left alone by it once it is there."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = """
import sys, torch
from kernelbench.modes import Mode

class Names(Mode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))

with Names() as names:
    x = torch.ones(3) * 2
assert names.names == ["aten.ones.default", "aten.mul.Tensor"], names.names
assert "torch._dynamo" not in sys.modules
frames = []

def backend(graph, inputs):
    frames.append(graph)
    return graph.forward

compiled = torch.compile(lambda x: x + 1, backend=backend)
with Names() as names:
    assert compiled(x).tolist() == [3, 3, 3]
assert names.names == ["aten.add.Tensor"], names.names  # seen, whoever ran it
assert not any("names" in str(graph.code) for graph in frames)
"""


def test_a_mode_sees_all_without_dynamo_and_with_it():
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
