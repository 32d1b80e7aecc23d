"""The referee's clock, held against the times that a contestant reports. Without a GPU the blocks run on the CPU with a stand-in for events."""

import math
import os
import statistics
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from kernelbench import Task
from kernelbench.clock import BETWEEN, UNKNOWN, Cycles, Gate, Watch, interval, strangers, summary, wait_for_gate
from kernelbench.contest import Block, Contest, Plan
from kernelbench.judge import Options, Referee
from kernelbench.process import Process, Stop, Zygote
from kernelbench.reference import Reference
from kernelbench.wire import Shared

TASK = Task(
    "slow",
    """import time
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        if torch.cuda.is_initialized():
            torch.cuda._sleep(200_000)
        else:
            time.sleep(0.001)
        return x * 2

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
""",
)
HONEST = TASK.source.replace("class Model(", "class ModelNew(")
LIES = """
import sys
kind = torch.cuda.Event if torch.cuda.is_initialized() else sys.modules["kernelbench.contestant"].Mark
true = kind.elapsed_time
kind.elapsed_time = lambda start, end: true(start, end) * FACTOR
"""


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def judged(request, tmp_path_factory):
    """clock(code) -> samples in ms, for a task whose reference has been clocked: (clock, the reference's median)."""
    with pytest.MonkeyPatch.context() as patch:  # contestants that do not notice tampering: the clock must
        unsealed = "import kernelbench.contestant as c; c.seal = lambda *_: lambda: None; zygote(int("
        patch.setattr(Zygote, "BOOT", Zygote.BOOT.replace("zygote(int(", unsealed))
        referee = Referee(request.param, b"key", Options(call_s=20))
    reference = Reference(TASK, request.param, b"key")

    def clock(code: str, entry: str = "ModelNew") -> list[float]:
        with Contest(referee, str(tmp_path_factory.mktemp("contest")), code, entry) as contest:
            contest.calibrates = entry == "Model"
            contest.load()
            contest.build(reference)
            contest.check(reference, "check", 0)
            return [value for block in contest.clocked(reference) for value in block]

    yield clock, statistics.median(clock(TASK.source, "Model"))
    referee.close()


def test_honest_times_are_confirmed_or_replaced(judged):
    clock, reference = judged
    samples = clock(HONEST)
    assert len(samples) >= 32  # two of three blocks at least
    if torch.cuda.is_available():
        assert reference * 0.7 < statistics.median(samples) < reference * 1.5
    else:
        assert statistics.median(samples) >= 1.0  # it sleeps for so long; on a busy machine longer


@pytest.mark.parametrize("factor", ["0.1", "0.5", "0.7"])
def test_events_that_lie(judged, factor):
    with pytest.raises(Stop, match="times that cannot be") as stop:
        judged[0](HONEST + LIES.replace("FACTOR", factor))
    assert (stop.value.status, stop.value.hack) == ("hack", "clock")


@pytest.mark.parametrize("factor", ["0.95", "0.93"])
def test_a_small_lie_gains_nothing(judged, factor):
    clock, reference = judged
    if not torch.cuda.is_available():
        pytest.skip("the CPU's times are not steady enough")
    assert statistics.median(clock(HONEST + LIES.replace("FACTOR", factor))) > 0.965 * reference


def test_a_few_calls_that_carry_all_the_time_are_no_fast_median():
    assert Block(10.0, [0.01] * 6 + [1.0] * 4, []).samples() == pytest.approx([0.406] * 10)
    assert Block(10.0, [1.0, 1.01, 0.99], []).samples() == [1.0, 1.01, 0.99]
    plan = Plan(3, [], [], overhead=1.0, jitter=0.12)
    assert Block(10.0, [1.0, 2.0, 3.0], []).unexplained(plan) == pytest.approx(1.0)
    assert Block(10.0, [1.0, 2.0, 3.0], [], ahead=1.5, filling=0.9).unexplained(plan) == pytest.approx(0.2)
    for left, believed in ((0.17, True), (0.19, False)):  # 3 % of 2 ms a forward are 0.06, 0.18 in all
        assert Block(7.0 + left, [1.0, 2.0, 3.0], []).believed(plan) == believed
    for left, believed in ((0.11, True), (0.13, False)):  # of short forwards the jitter counts: 0.12 in all
        assert Block(1.3 + left, [0.1] * 3, []).believed(plan) == believed


def test_the_head_start_by_hand():
    """ms: 2 + 0.4 a forward at first, then a third more than the CPU needed and 0.3; 3 + 1 a forward at most."""
    gpu, known = Cycles("cuda"), {16: 4.0, 2: 100.0}
    gpu.fastest = 1.01
    assert [gpu.head_start(known, n) for n in (16, 10, 2)] == pytest.approx([5.5, 6.0, 5.0])
    assert gpu.rate == pytest.approx(2e6 / 1.01)  # cycles a ms
    assert Cycles("cpu").head_start(known, 16) == Cycles("cpu").rate == 0
    referee = SimpleNamespace(device="cuda", peaks=[4e12])
    assert Referee.filling(referee, 8_000_000) == pytest.approx(0.004)  # read and written: 16 MB at 4 TB/s


def test_a_cpu_that_falls_behind_is_not_the_kernels_time(judged, monkeypatch):
    """Every second block's CPU is late and its events hold the gaps: those blocks do not count."""
    clock, numbers, block = judged[0], iter(range(10**6)), Contest._block

    def late(contest, reference, plan, draws):
        made = block(contest, reference, plan, draws)
        if next(numbers) % 2:
            made.events, made.busy, made.wall = (
                [e * 3 for e in made.events],
                made.ahead + 1,
                made.wall + 2 * sum(made.events),
            )
        else:
            made.busy = 0.0
        return made

    honest = statistics.median(clock(HONEST))
    monkeypatch.setattr(Contest, "_block", late)
    assert statistics.median(clock(HONEST)) < 2 * honest


EVERY_SECOND = """
    def forward(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls % 2 == 0 and self.calls > 4:
            return self.last.clone()
        self.last = x * 2
        return self.last
"""


@pytest.mark.parametrize("body", [EVERY_SECOND, EVERY_SECOND.replace("self.last.clone()", "torch.zeros_like(x)")])
def test_skipped_calls_are_wrong(judged, body):
    code = HONEST[: HONEST.index("    def forward")] + body + HONEST[HONEST.index("def get_inputs") :]
    with pytest.raises(Stop, match="In a timed call") as stop:
        judged[0](code)
    assert stop.value.status == "wrong"


def test_inputs_show_only_while_the_clock_runs(judged, monkeypatch):
    """When the contestant learns where they will lie there are zeros."""
    seen, ask = [], Contest._ask

    def spy(contest, message, timeout):
        seen.append((message["do"], any(bool(t.any()) for t in contest.arena.tensors)))
        return ask(contest, message, timeout)

    monkeypatch.setattr(Contest, "_ask", spy)
    assert judged[0](HONEST)
    assert ("prepare", False) in seen and ("call", True) in seen
    assert not any(do == "block" for do, _ in seen)  # these are filled in by the clock


def test_static_outputs_are_copied_within_their_time(judged):
    body = """
    def forward(self, x):
        if not hasattr(self, "out"):
            self.out = torch.empty_like(x)
        torch.cuda._sleep(200_000) if torch.cuda.is_initialized() else time.sleep(0.001)
        return torch.mul(x, 2, out=self.out)
"""
    code = HONEST[: HONEST.index("    def forward")] + body + HONEST[HONEST.index("def get_inputs") :]
    assert judged[0](code)


def test_outputs_with_gaps_are_copied_within_their_time(judged):
    """What is left to the export of outputs would be time that no event explains."""
    body = """
    def forward(self, x):
        torch.cuda._sleep(200_000) if torch.cuda.is_initialized() else time.sleep(0.001)
        return torch.stack([x * 2, x], dim=-1)[..., 0]
"""
    code = HONEST[: HONEST.index("    def forward")] + body + HONEST[HONEST.index("def get_inputs") :]
    assert judged[0](code)


def test_inputs_are_filled_in_behind_the_gate(judged, monkeypatch):
    """In every block: the gate is held, then the inputs come, the cache is flushed, the gate opens, the contestant is asked."""
    order, spied = [], {Gate: ["hold", "release"], Shared: ["refill"], Referee: ["flush"]}

    def spy(name, real):
        return lambda *args, **kwargs: (order.append(name), real(*args, **kwargs))[1]

    for kind, names in spied.items():
        for name in names:
            monkeypatch.setattr(kind, name, spy(name, getattr(kind, name)))
    ask = Process.ask

    def asked(process, message, *args, **options):
        order.append(message["do"]) if message["do"] in ("settle", "block") else None
        return ask(process, message, *args, **options)

    monkeypatch.setattr(Process, "ask", asked)
    assert judged[0](HONEST)
    one = ["settle", "hold", "refill", "flush", "release", "block"]
    assert len(order) >= 4 * len(one) and order == one * (len(order) // len(one))


@pytest.mark.parametrize("rest", ["x * 2", "(x * 2, torch.cuda._sleep(400_000))[0]"])
def test_work_before_the_gate_finds_nothing_to_work_on(judged, rest):
    """A contestant that does not wait, and one that idles afterwards until its time could be true."""
    if not torch.cuda.is_available():
        pytest.skip("without a GPU nothing is queued ahead")
    early = "\nimport sys\nsys.modules['kernelbench.contestant'].wait_for_gate = lambda gate, number: None\n"
    with pytest.raises(Stop, match="In a timed call") as stop:
        judged[0](HONEST.replace("return x * 2", f"return {rest}") + early)
    assert stop.value.status == "wrong"


def test_the_gate_by_itself():
    gate, memory = Gate("cpu"), torch.zeros(1, dtype=torch.int32)
    gate.hold(1), gate.release(memory)
    assert gate.number == 1 and gate.held() == 0.0 and memory == 0
    if torch.cuda.is_available():
        gate, memory, seen = Gate("cuda"), memory.cuda(), torch.zeros(1, dtype=torch.int32, device="cuda")
        with torch.cuda.stream(torch.cuda.Stream()):
            wait_for_gate(memory, 1)
            seen.copy_(memory)
            done = torch.cuda.Event()
            done.record()
        gate.hold(20_000_000)
        assert not done.query()
        gate.release(memory)
        done.synchronize()
        assert int(seen) == 1 and 5 < gate.held() < 40  # 20,000,000 cycles, between 0.5 and 4 GHz


def test_nobody_is_accused_while_somebody_else_uses_the_gpu(judged, monkeypatch):
    """Blocks whose walls are stretched: waited for, and at last believed no more than the referee's clock, but no hack."""
    waits, claimed, block = [], [], Contest._block

    def stretched(contest, reference, plan, draws):
        made = block(contest, reference, plan, draws)
        made.wall += 1.0 * len(made.events)
        claimed.extend(made.events)
        return made

    monkeypatch.setattr(Contest, "_block", stretched)
    with pytest.raises(Stop, match="times that cannot be"):
        judged[0](HONEST)
    monkeypatch.setattr(Cycles, "shared", lambda cycles: True)
    monkeypatch.setattr("kernelbench.contest.time.sleep", waits.append)
    claimed.clear()
    assert statistics.median(judged[0](HONEST)) > statistics.median(claimed) + 0.8
    assert [wait for wait in waits if wait >= 0.5] == [0.5, 1, 2, 4, 8]  # the task sleeps too


def test_no_inputs_are_seen_twice_however_often_a_contestant_is_timed(judged, monkeypatch):
    clock, seen, block = judged[0], [], Contest._block

    def spy(contest, reference, plan, draws):
        seen.extend(name for name, _ in draws)
        return block(contest, reference, plan, draws)

    clocked = Contest.clocked
    monkeypatch.setattr(Contest, "_block", spy)
    monkeypatch.setattr(
        Contest, "clocked", lambda contest, reference: [b for _ in range(2) for b in clocked(contest, reference)]
    )
    assert all(clock(HONEST))
    assert len(seen) == len(set(seen)) >= 2 * 4 * 16


# What is known of a time


def test_interval_by_hand():
    assert interval([[6.0]], [[2.0]]) == [3.0, 3.0]
    assert interval([[6.0] * 5], [[2.0] * 5]) == pytest.approx([3.0, 3.0])
    low, high = interval([[6.0] * 5], [[2.0, 2.0, 2.0, 2.0, 3.0]])
    assert min(abs(low - 2), abs(low - 3)) < 1e-9 and high == pytest.approx(3)
    assert interval([[6.0, 6.1] * 9], [[2.0, 2.1] * 9]) == interval([[6.0, 6.1] * 9], [[2.0, 2.1] * 9])
    # 1.96 times the spread of a quotient of two times that each spread by 1 %
    assert interval([[6.0] * 3] * 2, [[2.0] * 3] * 2, 0.01) == pytest.approx(
        [3 * math.exp(-0.02772), 3 * math.exp(0.02772)], rel=1e-5
    )
    # blocks that differ say more than the samples in them: one is drawn twice half of the time
    low, high = interval([[4.0] * 50, [6.0] * 50], [[2.0] * 50] * 2)
    assert (low, high) == pytest.approx((2.0, 3.0))


def test_blocks_of_unequal_length_count_alike():
    low, high = interval([[1.0] * 100, [3.0] * 2], [[1.0] * 3] * 2)
    assert (low, high) == pytest.approx((1.0, 3.0))


def test_the_interval_holds_what_it_should():
    """A/A: noise of a sample, of a block and of a process, as on a GPU: 1 is inside 95 % of the intervals (here at least 54 of 60)."""
    rng = np.random.default_rng(1)

    def side():
        process = 1 + 0.0025 * rng.standard_normal()
        return [
            list(process * (1 + 0.001 * rng.standard_normal()) * (1 + 0.01 * rng.standard_normal(64))) for _ in range(3)
        ]

    intervals = [interval(side(), side(), BETWEEN) for _ in range(60)]
    assert sum(low < 1 < high for low, high in intervals) >= 54
    assert statistics.mean(high - low for low, high in intervals) < 0.03


def test_the_state_of_a_gpu_in_words():
    assert summary([], None) == {}
    idle, watch = {"sm_mhz": 1980, "reasons": 1, "stretch": 1.0}, SimpleNamespace(others=lambda: 2, missing=None)
    quiet = summary([idle, idle | {"sm_mhz": 1965, "stretch": 1.004}], watch)
    assert quiet == {
        "sm_mhz": [1965, 1980],
        "throttled": [],
        "others": 2,
        "stretch": 1.004,
        "contended": False,
        "missing": None,
    }
    held = summary([idle, idle | {"reasons": 4 | 32, "stretch": 1.3}], watch)
    assert held["throttled"] == ["power cap", "temperature"] and not held["contended"]
    shared = summary([idle, idle | {"stretch": 1.3}], watch)
    assert shared["contended"] is True and shared["others"] == 2
    blind = summary([UNKNOWN | {"stretch": 1.2}], SimpleNamespace(others=lambda: None, missing="no NVML"))
    assert (blind["sm_mhz"], blind["others"], blind["contended"], blind["missing"]) == (None, None, None, "no NVML")


def test_whose_processes_hold_the_gpu():
    child = subprocess.Popen(["sleep", "30"])
    mine, parent = os.getpid(), os.getppid()
    try:
        assert strangers([mine, parent, child.pid], mine) == 0
        assert strangers([mine, child.pid, 2**22 + 1], mine) == 1  # gone by now, but not of the family
        assert strangers([mine, child.pid], child.pid) == 0 and strangers([child.pid], mine) is None
    finally:
        child.kill(), child.wait()


def test_without_nvml_the_watch_says_so():
    if torch.cuda.is_available():
        pytest.skip("NVML is here")
    watch = Watch()
    assert (
        watch() == UNKNOWN
        and watch.others() is None
        and watch.missing.startswith("clocks, throttling and other processes are unknown: ")
    )


@pytest.mark.gpu
def test_nvml_knows_this_gpu():
    torch.zeros(1, device="cuda")
    watch = Watch()
    assert watch.missing is None, watch.missing
    state = watch()
    assert 100 < state["sm_mhz"] < 5000 and isinstance(state["reasons"], int)
    assert watch.others() is None or watch.others() >= 0
