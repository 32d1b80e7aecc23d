"""The referee's clock, held against the times that a contestant reports. Without a GPU the blocks run on the CPU with a stand-in for events."""

import math
import os
import statistics
import subprocess
import time
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from kernelbench import Task
from kernelbench.clock import (
    BETWEEN,
    UNKNOWN,
    Cycles,
    Gate,
    Watch,
    interval,
    strangers,
    summary,
    wait_for_number,
    write_number,
)
from kernelbench.contest import Contest
from kernelbench.judge import Options, Referee
from kernelbench.process import Process, Stop, Zygote
from kernelbench.reference import Reference
from kernelbench.timer import JITTER, Block, Plan, Timer, prompt
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
        """Without a GPU the clock is that of a machine on which other tests run: who is accused once may be honest, who is four times is not."""
        for _ in range(3 if request.param == "cpu" else 0):
            try:
                return clocked(code, entry)
            except Stop as stop:
                if stop.hack != "clock":
                    raise
        return clocked(code, entry)

    def clocked(code: str, entry: str) -> list[float]:
        with Contest(referee, str(tmp_path_factory.mktemp("contest")), code, entry) as contest:
            contest.timer.calibrates = entry == "Model"
            contest.load()
            contest.build(reference)
            contest.check(reference, "check", 0)
            return [value for block in contest.timer.clocked(reference) for value in block]

    clock.referee = referee
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
    plan = Plan(3, [], [], overhead=1.0, jitter=0.12)
    assert Block(10.0, [0.01] * 6 + [1.0] * 4, []).samples(plan) == pytest.approx([0.406] * 10)
    assert Block(10.0, [1.0, 1.01, 0.99], []).samples(plan) == [1.0, 1.01, 0.99]
    assert Block(10.0, [1.0, 2.0, 3.0], []).unexplained(plan) == pytest.approx(1.0)
    assert Block(10.0, [1.0, 2.0, 3.0], [], filling=2.4).unexplained(plan) == pytest.approx(0.2)
    for left, believed in ((0.17, True), (0.19, False)):  # 3 % of 2 ms a forward are 0.06, 0.18 in all
        assert Block(7.0 + left, [1.0, 2.0, 3.0], []).believed(plan) == believed
    for left, believed in ((0.11, True), (0.13, False)):  # of short forwards the jitter counts: 0.12 in all
        assert Block(1.3 + left, [0.1] * 3, []).believed(plan) == believed


def test_what_filling_takes_by_hand():
    referee = SimpleNamespace(device="cuda", peaks=[4e12])
    assert Referee.filling(referee, 8_000_000) == pytest.approx(0.004)  # read and written: 16 MB at 4 TB/s


def test_a_cpu_that_falls_behind_is_not_the_kernels_time(judged, monkeypatch):
    """Every second block's CPU is late and its events hold the gaps: those blocks do not count."""
    clock, numbers, block = judged[0], iter(range(10**6)), Timer._block

    def late(timer, reference, plan, draws):
        made = block(timer, reference, plan, draws)
        made.prompt = not next(numbers) % 2
        if not made.prompt:
            made.wall, made.events = made.wall + 2 * sum(made.events), [e * 3 for e in made.events]
        return made

    honest = statistics.median(clock(HONEST))
    monkeypatch.setattr(Timer, "_block", late)
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
    seen, ask = [], Contest.ask

    def spy(contest, message, timeout):
        seen.append((message["do"], any(bool(t.any()) for t in contest.arena.tensors)))
        return ask(contest, message, timeout)

    monkeypatch.setattr(Contest, "ask", spy)
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
    """In every block: all is queued and the outputs are named, then the gate opens over the inputs, and closes over the outputs. Without a
    GPU nothing can be queued, and the contestant is asked once the inputs are there."""
    order, spied = [], {Gate: ["open", "close"], Shared: ["refill"], Referee: ["flush"], Timer: ["_held"]}

    def spy(name, real):
        return lambda *args, **kwargs: (order.append(name), real(*args, **kwargs))[1]

    for kind, names in spied.items():
        for name in names:
            monkeypatch.setattr(kind, name, spy(name, getattr(kind, name)))
    tell = Process.tell

    def told(process, message, *args, **options):
        order.append(message["do"]) if message["do"] in ("settle", "block") else None
        return tell(process, message, *args, **options)

    monkeypatch.setattr(Process, "tell", told)
    monkeypatch.setattr(Timer, "_profile", lambda *_: [])  # fills inputs in as well
    assert judged[0](HONEST)
    one = ["settle", "open", "refill", "flush", "block", "_held", "close"]
    if torch.cuda.is_available():
        one = ["settle", "block", "_held", "open", "refill", "flush", "close"]
    assert len(order) >= 4 * len(one) and order == one * (len(order) // len(one))


GATE = "\nimport sys, torch\nrefs = sys.modules['kernelbench.contestant']\n"


@pytest.mark.parametrize("rest", ["x * 2", "(x * 2, torch.cuda._sleep(400_000))[0]"])
def test_work_before_the_gate_finds_nothing_to_work_on(judged, rest):
    """A contestant that does not wait, and one that idles afterwards until its time could be true."""
    if not torch.cuda.is_available():
        pytest.skip("without a GPU nothing is queued ahead")
    early = f"{GATE}refs.wait_for_number = lambda word, number: None\n"
    with pytest.raises(Stop, match="In a timed call") as stop:
        judged[0](HONEST.replace("return x * 2", f"return {rest}") + early)
    assert stop.value.status == "wrong"


def test_who_says_too_early_that_all_is_done_gains_nothing(judged):
    """What is not there yet is wrong; what is there by the time it is taken has been timed until then."""
    clock, reference = judged
    if not torch.cuda.is_available():
        pytest.skip("without a GPU the reply is what says it")
    early = f"""{GATE}
def wait(word, number, plain=refs.wait_for_number):
    plain(word, number)
    refs.write_number(word.as_strided((1,), (1,), word.storage_offset() + 1), number)
refs.wait_for_number = wait
"""
    try:
        assert statistics.median(clock(HONEST + early)) > 0.965 * reference
    except Stop as stop:
        assert stop.status == "wrong" and "In a timed call" in stop.message


def test_who_is_one_forward_early_gains_nothing(judged):
    """All is said to be done when the last forward begins, and the events leave it out."""
    clock, reference = judged
    if not torch.cuda.is_available():
        pytest.skip("without a GPU the reply is what says it")
    early = f"""{GATE}
calls = []
def wait(word, number, plain=refs.wait_for_number):
    calls[:] = [(word.as_strided((1,), (1,), word.storage_offset() + 1), number)]
    plain(word, number)
def forward(self, x, plain=ModelNew.forward):
    if calls:
        calls.append(None)
        if len(calls) == 17:
            refs.write_number(*calls[0])
    return plain(self, x)
refs.wait_for_number, ModelNew.forward = wait, forward
""" + LIES.replace("FACTOR", "0.9375")
    try:
        assert statistics.median(clock(HONEST + early)) > 0.965 * reference
    except Stop as stop:
        assert stop.status == "wrong" and "In a timed call" in stop.message


@pytest.mark.parametrize("never", ["None", "torch.cuda._sleep(1 << 40)"])
def test_nobody_waits_for_ever_for_one_that_never_says_that_it_is_done(judged, never, monkeypatch):
    clock = judged[0]
    if not torch.cuda.is_available():
        pytest.skip("without a GPU the reply is what says it")
    lost = f"{GATE}refs.write_number = lambda word, number: {never}\n"
    monkeypatch.setattr(clock.referee, "options", replace(clock.referee.options, call_s=3))
    with pytest.raises(Stop) as stop:
        clock(HONEST + lost)
    assert stop.value.status == ("hack" if never == "None" else "timeout")
    torch.cuda.synchronize()
    assert clock(HONEST)  # the referee's GPU goes on


def test_code_that_waits_for_its_gpu_is_timed(judged):
    """It cannot be queued ahead: the gate opens after a while, and the time is the referee's, messages included; nobody calls that a lie."""
    clock, reference = judged
    waits = "(x * 2, torch.cuda.synchronize() if torch.cuda.is_initialized() else None)[0]"
    times = clock(HONEST.replace("return x * 2", f"return {waits}"))
    assert len(times) >= 32
    if torch.cuda.is_available():  # else its times are a busy machine's
        assert 0.9 * reference < statistics.median(times) < 5 * reference


@pytest.mark.parametrize("calls", [1, 2, 3, 16])
def test_the_first_and_the_last_output_of_a_block_are_always_taken(calls):
    """And two of any, by chance."""
    read = lambda reply, fds, picks, like: [("tree", []) for _ in picks]  # noqa: E731
    process = SimpleNamespace(reply=lambda timeout: ({}, []))
    contest = SimpleNamespace(process=process, read=read, options=Options())
    taken = [Timer._held(SimpleNamespace(contest=contest), Plan(calls, [], []), calls) for _ in range(300)]
    assert all({0, calls - 1} <= set(picks) and picks == sorted(set(picks)) for picks, _ in taken)
    assert all(len(picks) == len(outputs) <= 4 for picks, outputs in taken)
    assert {pick for picks, _ in taken for pick in picks} == set(range(calls))


def test_what_is_no_forward_s_work_is_not_counted_as_such():
    """The GPU changed from one process to the other behind the first event: 0.6 of the 1.0 ms that a block takes beyond its forwards, which are
    16 x 0.1 ms by the clock. Work of 0.6 ms in one forward would show in the clock. A reference that is trusted has the median."""
    plan, events = Plan(16, [], [], overhead=1.0), [0.7] + [0.1] * 15
    assert Block(1.0 + 1.6 + 0.01, events, []).samples(plan) == events
    assert Block(3.0 + 1.6 + 0.01, events, [], filling=2.0).samples(plan) == events
    assert Block(1.0 + 2.2, events, []).samples(plan) == pytest.approx([2.2 / 16] * 16)
    assert Block(1.0 + 2.2, events, []).samples(plan, trusted=True) == events
    timer = SimpleNamespace(
        contest=SimpleNamespace(entry="Model", referee=SimpleNamespace(overhead=math.inf)), calibrates=True
    )
    Timer._calibrate(timer, plan, [Block(2.6, events, []), Block(2.61, [0.1] * 16, []), Block(2.62, [0.1] * 16, [])])
    assert (plan.overhead, plan.jitter) == pytest.approx((1.0, 0.01))


@pytest.mark.parametrize("more, added", [(0.04, 0.0), (0.0624, 0.0124 / 16), (0.09, 0.04 / 16), (0.3, None)])
def test_what_is_not_explained_is_added_but_for_what_would_have_been_believed(more, added):
    """ms in a block of 16 forwards of 0.05 ms, of which 0.05 need no explanation; more than a quarter of the time is a lie."""
    plan = Plan(16, [], [], overhead=1.0, jitter=0.05)
    blocks = [Block(1.0 + 16 * 0.05 + more + 0.001 * i, [0.05] * 16, []) for i in range(3)]
    contest = SimpleNamespace(entry="ModelNew", options=Options(), referee=SimpleNamespace(use_gpu=nullcontext))
    timer = SimpleNamespace(contest=contest, plan=lambda reference: plan, _prepare=lambda plan: None)
    good = [b for b in blocks if b.believed(plan)]
    timer._rounds = lambda reference, plan, found, wanted: (found.extend(blocks), (good, False))[1]
    if added is None:
        with pytest.raises(Stop, match="times that cannot be"):
            Timer.clocked(timer, None)
    else:
        assert sum(Timer.clocked(timer, None), []) == pytest.approx([0.05 + added] * 48, abs=1e-9)


def test_blocks_that_were_queued_ahead_are_those_that_count():
    late, ready = Block(1.0, [0.1], [], prompt=False), Block(1.0, [0.1], [])
    assert prompt([late, ready, late, ready]) == [ready, ready] and prompt([late, late]) == [late, late]


def test_what_a_reference_that_waits_for_its_gpu_teaches_about_others():
    """ms beyond the events: the least of blocks that were ready, what the others' are known to take where none was."""
    referee, plan = SimpleNamespace(overhead=math.inf), Plan(2, [], [])
    timer = SimpleNamespace(contest=SimpleNamespace(entry="Model", referee=referee), calibrates=True)
    made = lambda extra, ready=True: Block(0.5 + 0.2 + extra, [0.1, 0.1], [], 0.5, ready)  # noqa: E731
    Timer._calibrate(timer, plan, [made(1.4, ready=False)])
    assert (plan.overhead, plan.jitter, referee.overhead) == (pytest.approx(1.4), JITTER, math.inf)
    Timer._calibrate(timer, plan, [made(0.66), made(0.1, ready=False), made(0.64), made(0.65)])
    assert (plan.overhead, plan.jitter, referee.overhead) == pytest.approx((0.64, 0.01, 0.64))
    Timer._calibrate(timer, plan, [made(0.7), made(0.9), made(0.9)])
    assert (plan.overhead, plan.jitter, referee.overhead) == pytest.approx(
        (0.7, JITTER, 0.64)
    )  # 0.2 is too much for jitter
    Timer._calibrate(timer, plan, [made(1.4, ready=False), made(1.3, ready=False)])
    assert plan.overhead == pytest.approx(0.64)
    timer.calibrates = False
    Timer._calibrate(timer, plan, [made(0.63), made(0.65)])
    assert plan.overhead == pytest.approx(0.63)
    timer.contest.entry = "ModelNew"
    Timer._calibrate(timer, plan, [made(0.1)])
    assert plan.overhead == pytest.approx(0.63)


def test_the_gate_by_itself():
    gate, words = Gate("cpu"), torch.zeros(2, dtype=torch.int32)
    gate.open(words, lambda: time.sleep(0.01)), gate.close(lambda: time.sleep(0.01))
    assert gate.number == 1 and 20 <= gate.wall() < 200 and not words.any()
    if torch.cuda.is_available():
        gate, words, seen = Gate("cuda"), words.cuda(), torch.zeros(2, dtype=torch.int32, device="cuda")
        with torch.cuda.stream(torch.cuda.Stream()):
            wait_for_number(words[:1], 1)
            seen.copy_(words)
            torch.cuda._sleep(20_000_000)  # cycles, at between 0.5 and 4 GHz
            write_number(words[1:], 1)
        assert not seen.any()
        gate.open(words, lambda: torch.cuda._sleep(20_000_000)), gate.close(lambda: None)
        assert 10 < gate.wall() < 80 and seen.tolist() == [1, 0] and words.tolist() == [1, 1]
        gate.open(words, lambda: None), gate.close(lambda: None)
        assert gate.wall(patience=0.1) is None and words.tolist() == [2, 2]  # nobody was there


def test_nobody_is_accused_while_somebody_else_uses_the_gpu(judged, monkeypatch):
    """Blocks whose walls are stretched: waited for, and at last believed no more than the referee's clock, but no hack."""
    waits, claimed, block = [], [], Timer._block

    def stretched(timer, reference, plan, draws):
        made = block(timer, reference, plan, draws)
        made.wall += 1.0 * len(made.events)
        claimed.extend(made.events)
        return made

    monkeypatch.setattr(Timer, "_block", stretched)
    with pytest.raises(Stop, match="times that cannot be"):
        judged[0](HONEST)
    monkeypatch.setattr(Cycles, "shared", lambda cycles: True)
    monkeypatch.setattr("kernelbench.timer.time.sleep", waits.append)
    claimed.clear()
    assert statistics.median(judged[0](HONEST)) > statistics.median(claimed) + 0.8
    assert [wait for wait in waits if wait >= 0.5] == [0.5, 1, 2, 4, 8]  # the task sleeps too


def test_no_inputs_are_seen_twice_however_often_a_contestant_is_timed(judged, monkeypatch):
    clock, seen, block = judged[0], [], Timer._block

    def spy(timer, reference, plan, draws):
        seen.extend(name for name, _ in draws)
        return block(timer, reference, plan, draws)

    clocked = Timer.clocked
    monkeypatch.setattr(Timer, "_block", spy)
    monkeypatch.setattr(
        Timer, "clocked", lambda timer, reference: [b for _ in range(2) for b in clocked(timer, reference)]
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
