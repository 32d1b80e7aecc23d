"""How much a large task takes: by the tensors that the referee sees, and on a GPU by what the driver says of both sides."""

import collections
import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import selfjudge
from gym import Gym, Job, reference_code
from kernelbench import Task, compare, draws, judge, wire
from kernelbench.contest import Contest
from kernelbench.judge import Options, Referee
from kernelbench.process import Stop
from kernelbench.reference import Kept, Reference

LARGE = """import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(ROWS, 1024)]

def get_init_inputs():
    return []
"""
ROWS = 256
TASK = Task("large", LARGE.replace("ROWS", str(ROWS)))
ONE = 4 * ROWS * 1024  # bytes of the input, and of the output


class Held(TorchDispatchMode):
    """Counts the bytes of all memory that tensors seen in this process lie in, shared memory too: `most` at once."""

    def __init__(self):
        super().__init__()
        self.owners, self.now, self.most = collections.Counter(), 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor) and t.device.type != "meta" and t.nbytes > 1 << 12:
                memory = t.untyped_storage()
                self.change(memory._cdata, memory.nbytes(), 1)
                weakref.finalize(t, self.change, memory._cdata, memory.nbytes(), -1)
        return out

    def change(self, place: int, nbytes: int, by: int):
        before = self.owners[place]
        self.owners[place] += by
        self.now += nbytes * (bool(self.owners[place]) - bool(before))
        self.most = max(self.most, self.now)


@pytest.fixture(scope="module")
def referee():
    referee = Referee("cpu", b"key", Options(any_code=True, call_s=20, cache=0.0, memory_gib=1e-6))
    yield referee
    referee.close()


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setitem(compare.CHUNK, "cpu", 1 << 12)
    monkeypatch.setattr(wire, "PIECES", 64)
    monkeypatch.setattr(judge, "ARENA", 0)  # no arena is small enough to be kept for the next contestant


def test_the_meter():
    x = torch.ones(4, ONE // 16)
    with Held() as held:
        x = x + 1
        y = x[1:] * 2
        del y
        z = x * 2 + 1
    assert held.most == 3 * ONE and held.now == 2 * ONE and len(z) == 4
    with Held() as held:
        assert compare.mismatch(x.T, x.T) is None
    assert held.most < 1.3 * ONE


@pytest.mark.parametrize("values", ["randn", "rand"])
def test_no_more_than_three_of_a_size_lie_in_memory(values, referee, monkeypatch):
    """The shared input, the contestant's output (of which the referee reads a copy without a GPU), and the output that it should give or else
    the same input made again: 1.5 x (input + output), and a tenth for what is compared at once. The task is tried in more precision once, unless
    that would fill an eighth of the memory: left out here. rand: an input passes for the answer in the first draws, so that more are looked at."""
    monkeypatch.setattr(Reference, "_exact", lambda *_: None)
    monkeypatch.setattr(draws, "STRUCTURED", 0)  # nor is a large input looked at for what its values have in common
    with Held() as held:
        task = Task("large", TASK.source.replace("randn", values))
        verdict = referee.judge(task, reference_code(task))
    assert verdict.status == "correct" and verdict.message == ""
    assert verdict.memory == {"weights": 0, "inputs": ONE, "outputs": ONE}
    assert 3 * ONE <= held.most < 3.4 * ONE


def test_a_task_that_does_not_fit_is_no_fault_of_the_kernel(referee, monkeypatch):
    """Twice 2 MB, and 64 MB for what a process takes at all."""
    monkeypatch.setattr(referee, "memory", 2**30 // 20)
    verdict = referee.judge(Task("does not fit", TASK.source + "\n"), reference_code(TASK))
    assert verdict.status == "gym_error"
    assert verdict.message == "the task does not fit needs 0.1 GiB, this machine has 0.0"


def test_a_large_task_has_the_memory_to_itself(referee):
    """From an eighth of it on: its candidates wait until its reference is timed and gone."""
    reference = Reference(TASK, "cpu", b"key", referee.kept)
    for memory, large in ((8 * reference.need(), False), (8 * reference.need() - 1, True)):
        reference.memory = memory
        assert reference.large() is large


def test_what_lies_beside_the_evaluations_is_no_room_of_theirs(referee):
    """A tenth of the free memory is for kept outputs (none here), a sixteenth for what torch may keep. A large task clears what it can."""
    assert referee.kept.limit == 0 and referee.room.total == pytest.approx(referee.memory * 15 / 16, abs=1)
    kept = Kept(1 << 20)
    for i in range(3):
        kept.put((i,), ([], [torch.zeros(1 << 14)]))
    assert kept.nbytes == 3 << 16
    kept.clear()
    assert kept.nbytes == 0 and kept.get((0,)) is None


def test_whether_a_task_is_large_is_known_before_it_runs(referee):
    """Outputs of 16 MiB counted, and not the input alone: 2 x 32 MiB and 64 for what a process takes, of 8 x 100 MiB."""
    task = Task("large", LARGE.replace("ROWS", str(1 << 12)))
    reference = Reference(task, "cpu", b"key", referee.kept, memory=800 << 20)
    assert reference.sizes == [0, 16 << 20, 16 << 20] and reference.need() == 128 << 20 and reference.large()
    assert Reference(task, "cpu", b"key", referee.kept, memory=2 << 30).sizes == [0, 16 << 20, 0]


def timed(referee, folder, code: str):
    reference = Reference(TASK, "cpu", b"key", referee.kept)
    with Contest(referee, str(folder), code, "ModelNew") as contestant:
        contestant.load()
        contestant.build(reference)
        contestant.check(reference, "check", 0)
        timer = contestant.timer
        timer._prepare(plan := timer.plan(reference))
        return plan, timer._blocks(reference, plan, 3)


def test_large_forwards_are_timed_one_by_one(referee, tmp_path):
    with Held() as held:
        plan, blocks = timed(referee, tmp_path, reference_code(TASK))
    assert (plan.calls, plan.light) == (1, False)
    assert [(len(block.events), block.checks) for block in blocks] == [(1, [])] * 3
    assert 4 * ONE <= held.most < 4.4 * ONE


LATE = LARGE.replace("class Model(", "class ModelNew(").replace(
    "        return torch.relu(x)",
    """        self.calls = getattr(self, "calls", 0) + 1
        return torch.relu(x) if self.calls == 1 else torch.cat([torch.relu(x[:-1]), x[-1:]])""",
)


def test_all_of_a_large_output_is_checked(referee, tmp_path):
    with pytest.raises(Stop, match="In a timed call .* values are wrong"):
        timed(referee, tmp_path, LATE.replace("ROWS", str(ROWS)))


@pytest.mark.gpu
def test_both_sides_together_on_a_gpu():
    """KernelBench's level1/19 in all but its size: input and output of 6 GiB each. Counted by the driver: contexts, workspaces and all."""
    task = Task("large", LARGE.replace("ROWS", str(6 << 18)))
    used = selfjudge.Used()
    with Gym("cuda", gpus=[0], workers=1, seed=1, any_code=True) as gym:
        verdict = gym.evaluate([Job(task, reference_code(task))])[0]
    assert verdict.status == "correct", verdict.message
    assert 24 * 2**30 < used.peak() < 2.2 * 12 * 2**30
    assert verdict.speedup == pytest.approx(1.0, abs=0.03)
