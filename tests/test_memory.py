"""How much a large task takes: by the tensors that the referee sees, and on a GPU by what the driver says of both sides."""

import collections
import contextlib
import threading
import time
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
from kernelbench.process import Fault, Stop
from kernelbench.reference import Kept, Reference
from kernelbench.room import Live

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
    """A tenth of the free memory is for kept outputs (none here), a sixteenth for what torch may keep, another for the weights of tasks that
    wait. A large task clears what it can."""
    assert referee.kept.limit == 0 and referee.room.total == pytest.approx(referee.memory * 14 / 16, abs=1)
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
    small = Reference(
        task, "cpu", b"key", referee.kept, memory=(128 << 30) + 1
    )  # 8,192 times the input: not worth a look
    assert small.sizes == [0, 16 << 20, 0] and small.scratch == 0


MANY = """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(1024, 4096, bias=False)

    def forward(self, x):
        h = self.up(x)          # four times the input
        g = torch.sigmoid(h)    # and again
        h = h * g               # and again, then one goes
        g = g.view(-1, 2, 4096) # nothing
        return h.sum(1) + g.sum(1).mean()

def get_inputs():
    return [torch.randn(4096, 1024)]

def get_init_inputs():
    return []
"""


def test_what_a_forward_takes_is_known_before_it_runs(referee):
    """By hand: h, g and h * g at once are 3 x 64 MiB; of the output, 4,096 values of 4 bytes, nothing is there then."""
    reference = Reference(Task("many", MANY), "cpu", b"key", referee.kept, memory=2 << 30)
    assert reference.sizes == [16 << 20, 16 << 20, 4096 * 4]
    assert reference.scratch == 3 * (64 << 20) - 4096 * 4
    with Live() as live:
        x = torch.ones(256, device="meta")
        y = (x + 1).view(16, 16)
        x.add_(1)
        del y
        x[:128] + x[128:]
    assert (live.now, live.most) == (1024, 2048)


def test_who_lacks_memory_beside_others_is_judged_again_alone(referee, monkeypatch):
    """Not blamed, candidate or task; nor judged again where nobody else was there, or for another reason."""
    real, calls = referee._judge, []

    def judge(verdict, reference, code, folder):
        calls.append(referee.room.used)
        if len(calls) < 2:
            reference.timing = text if isinstance(error, Fault) else None  # which is no last word
            raise error
        real(verdict, reference, code, folder)

    def found():
        calls.clear()
        referee.references.clear()
        verdicts.append(referee.judge(TASK, reference_code(TASK)))

    monkeypatch.setattr(referee, "_judge", judge)
    text = "OutOfMemoryError: CUDA out of memory. Tried to allocate 498.00 MiB"
    oom = [
        Stop("runtime_error", text),
        Fault(f"the task fails on its own reference: {text}"),
        torch.OutOfMemoryError(text),
    ]
    verdicts = []
    for error in oom:
        for beside in (False, True):
            thread = threading.Thread(target=found)
            with referee.room.take(10) if beside else contextlib.nullcontext():
                thread.start()
                while beside and not calls:
                    time.sleep(0.01)
                time.sleep(0.05 * beside)  # then it waits until it is alone
                assert len(calls) <= 1
            thread.join()
            assert len(calls) == 1 + beside and (not beside or calls[1] >= referee.room.total)
            assert verdicts.pop().status == (
                "correct" if beside else "runtime_error" if error is oom[0] else "gym_error"
            )
            calls.clear()
    error = Stop("runtime_error", "IndexError")
    with referee.room.take(10):
        found()
    assert verdicts[0].status == "runtime_error" and len(calls) == 1


def test_an_evaluation_takes_by_hand(referee, monkeypatch):
    """1 MiB in, 1 MiB out, nothing between. On a GPU: 16 timed forwards' on both sides; before the reference has run, half of all more and 1 GiB.
    Where own kernels are tested: what they read, what they write twice, and what a library wrote."""
    reference = Reference(TASK, "cpu", b"key", referee.kept)
    reference.sizes, need = [0, ONE, ONE], 4 * ONE + (1 << 26)
    assert referee._takes(reference) == need
    with monkeypatch.context() as patch:
        patch.setattr(referee, "options", Options(memory_gib=1e-6))
        assert referee._takes(reference) == need + 4 * ONE
        patch.setattr(referee, "device", "cuda")
        patch.setattr(referee, "block", 1 << 30)
        timed = need + 2 * 16 * 2 * ONE
        assert referee._takes(reference) == timed + timed // 2 + (1 << 30) + 4 * ONE
        reference.timing = {"ms": 1.0}
        assert referee._takes(reference) == timed + 4 * ONE


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
