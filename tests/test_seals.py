import json
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
import torch
from torch.overrides import TorchFunctionMode

from kernelbench.seals import Poison, seal

ROOT = Path(__file__).resolve().parent.parent


def test_nothing_has_changed():
    assert seal()() is None


def test_changed_functions_are_named(monkeypatch):
    place = types.SimpleNamespace(__name__="place")
    for name in ("one", "two"):
        setattr(place, name, lambda: 1)
    place.number = 3
    changed = seal(place)
    place.number, place.new = 4, print  # no function that was there
    assert changed() is None
    with monkeypatch.context() as patch:
        patch.setattr(place, "two", lambda: 2)
        assert changed() == "place.two"
    with monkeypatch.context() as patch:
        patch.delattr(place, "one")
        assert changed() == "place.one"
    with monkeypatch.context() as patch:
        patch.setattr(place.one, "__code__", (lambda: 3).__code__)
        assert changed() == "place.one"
    assert changed() is None


@pytest.mark.parametrize(
    "place, name",
    [(torch.Tensor, "detach"), (json, "dumps"), (time, "perf_counter"), (torch.cuda.Event, "elapsed_time")],
)
def test_what_carries_tensors_messages_and_times_is_sealed(monkeypatch, place, name):
    changed = seal()
    monkeypatch.setattr(place, name, lambda *_: None)
    assert changed() == f"{place.__name__}.{name}"


def test_hooks_and_modes_are_noticed():
    class Mode(TorchFunctionMode):
        pass

    changed = seal()
    with Mode():
        assert changed() == "a mode of torch"
    sys.setprofile(lambda *_: None)
    try:
        assert changed().startswith("what the interpreter calls by itself")
    finally:
        sys.setprofile(None)
    assert changed() is None
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    assert changed().startswith("what the interpreter calls by itself")
    signal.signal(signal.SIGUSR1, before)
    with torch.device("cpu"):  # a default device is nobody's trick
        assert changed() is None


def test_threads_that_go_on_are_noticed():
    changed, thread = seal(), threading.Timer(1000, print)
    thread.start()
    assert changed().startswith("what runs beside the forward")
    thread.cancel(), thread.join()
    assert changed() is None


def test_no_audit_hook_is_added_after_ours():
    code = "import sys; from kernelbench.seals import no_more_hooks; sys.addaudithook(no_more_hooks); heard = []"
    code += "; sys.addaudithook(lambda *event: heard.append(event)); open('/dev/null').close(); print(len(heard))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert ran.stdout == "0\n", ran.stderr


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.int8, torch.bool])
def test_uninitialised_memory_holds_finite_random_values(dtype):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    like = torch.zeros(50, 40, dtype=dtype)
    with Poison("cpu"):
        made = [torch.empty(50, 40, dtype=dtype), torch.empty_like(like), like.new_empty(50, 40)]
        made += [torch.empty_strided((50, 40), (1, 50), dtype=dtype)]
        assert torch.zeros(9).tolist() == [0] * 9 and torch.empty(0).numel() == 0
    for t in made:
        assert len(t.unique()) > (1 if dtype == torch.bool else 50) and (t == t).all() and t.float().isfinite().all()
    assert torch.equal(torch.rand(3), expected)  # the candidate's own random numbers are what they were


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.complex64, torch.uint16])
def test_what_cannot_be_filled_is_left(dtype):
    with Poison("cpu"):
        assert torch.empty(7, dtype=dtype).shape == (7,)
        assert torch.empty(3, 3, layout=torch.sparse_coo).layout == torch.sparse_coo
