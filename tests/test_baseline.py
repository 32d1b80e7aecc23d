"""The reference's side: timed beside every candidate, kept in its process, written to disk. Without a GPU the measured protocol runs on the
CPU with a stand-in for events (`simulated` is switched off)."""

import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from kernelbench import Task, times
from kernelbench.contest import Contest
from kernelbench.judge import Options, Referee
from kernelbench.process import Stop
from kernelbench.timer import Timer, agree, middle

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
KERNELS = Path(__file__).resolve().parent / "kernels"
TASK = Task("task", (KERNELS / "task.py").read_text())
FUSED = (KERNELS / "fused.py").read_text()


@pytest.fixture(scope="module", params=DEVICES)
def referee(request, tmp_path_factory):
    options = Options(
        call_s=20, times=str(tmp_path_factory.mktemp("times")), residents=2, blocks=2, any_code=True, fresh_s=0
    )
    options = replace(options, memory_gib=1e-4) if request.param == "cpu" else options  # two forwards a block
    referee = Referee(request.param, b"key", options)
    referee.simulated = False
    yield referee
    referee.close()


@pytest.fixture
def events(monkeypatch):
    """What happens to contestants, in order: (what, class, its process's number)."""
    seen = []

    def spy(kind, name, wrapped):
        def method(self, *args, **options):
            contest = getattr(self, "contest", self)
            seen.append((name, contest.entry, contest.process.job if hasattr(contest, "process") else None))
            return wrapped(self, *args, **options)

        monkeypatch.setattr(kind, name, method)

    for kind, name in ((Timer, "clocked"), (Contest, "__enter__"), (Contest, "__exit__")):
        spy(kind, name, getattr(kind, name))
    return seen


def test_the_reference_is_timed_again_for_every_candidate_when_that_is_dead(referee, events):
    first = referee.judge(TASK, FUSED)
    assert first.status == "correct", first.message
    names = [event[:2] for event in events]
    opened, timed, closed = ("__enter__", "ModelNew"), ("clocked", "ModelNew"), ("__exit__", "ModelNew")
    assert names.index(opened) < names.index(("clocked", "Model")) < names.index(timed) < names.index(closed)
    assert names[names.index(closed) + 1 :] == [("clocked", "Model")]  # in the process that timed it first
    jobs = {job for name, entry, job in events if name == "clocked" and entry == "Model"}
    events.clear()
    second = referee.judge(TASK, FUSED + "\n# again\n")
    assert [e[:2] for e in events] == [opened, timed, closed, ("clocked", "Model")]
    assert {job for name, entry, job in events if name == "clocked" and entry == "Model"} == jobs and len(jobs) == 1
    assert first.reference_ms != second.reference_ms  # no time from earlier
    for verdict in (first, second):
        low, high = verdict.speedup_ci
        assert low < verdict.speedup < high and verdict.speedup == verdict.reference_ms / verdict.kernel_ms
        assert verdict.reference_times["median"] == verdict.reference_ms and verdict.reference_times["num_trials"] >= 4
        assert verdict.clock["stretch"] >= 1 and verdict.timing == "measured"


def test_candidates_share_a_reference_that_was_timed_just_now(referee, events, monkeypatch):
    task = Task("shared", f"{TASK.source}\n# shared\n")
    monkeypatch.setattr(referee.baseline, "options", replace(referee.options, fresh_s=600))
    first, second = (referee.judge(task, f"{FUSED}\n# {i}\n") for i in range(2))
    assert first.reference_ms == second.reference_ms and first.kernel_ms != second.kernel_ms
    assert [e[:2] for e in events].count(("clocked", "Model")) == 1
    monkeypatch.undo()
    assert referee.judge(task, f"{FUSED}\n# 2\n").reference_ms != first.reference_ms


def test_a_lost_resident_is_replaced_and_blames_nobody(referee, events):
    assert referee.judge(TASK, FUSED + "\n# before\n").status == "correct"
    _, contest = referee.baseline.residents[TASK.key]
    referee.zygote.kill(contest.process.job)
    contest.process.zygote.exits[contest.process.job].event.wait(10)
    events.clear()
    verdict = referee.judge(TASK, FUSED + "\n# after\n")
    assert verdict.status == "correct", verdict.message
    assert [e[:2] for e in events].count(("__enter__", "Model")) == 1
    referee.zygote.process.kill()
    referee.zygote.process.wait()
    verdict = referee.judge(TASK, FUSED + "\n# and again\n")
    assert verdict.status == "correct", verdict.message


def test_the_longest_unused_residents_go(referee):
    tasks = [Task(f"task {i}", f"{TASK.source}\n# {i}\n") for i in range(3)]
    for task in tasks:
        referee.baseline.settle(referee._reference(task))
    assert list(referee.baseline.residents) == [task.key for task in tasks[1:]]
    assert all(not contest.process.dead for _, contest in referee.baseline.residents.values())


def test_residents_go_before_a_large_task_and_it_leaves_none(referee, events, monkeypatch):
    small, large = (Task(name, f"{TASK.source}\n# {name}\n") for name in ("small", "large"))
    assert referee.judge(small, FUSED).status == "correct" and small.key in referee.baseline.residents
    need = referee._reference(large).need
    monkeypatch.setattr(referee._reference(large), "need", lambda: referee.room.total // 3)
    events.clear()
    assert referee.judge(large, FUSED).status == "correct" and not referee.baseline.residents
    names = [event[:2] for event in events]
    assert names.count(("clocked", "Model")) == 2 == names.count(("__enter__", "Model"))  # each in a process of its own
    assert names[0] == ("__exit__", "Model") and 4 * need() < referee.room.total


def test_a_time_on_disk_is_shown_and_mended_but_never_used(referee):
    folder, task = referee.options.times, Task("kept", f"{TASK.source}\n# kept\n")
    facts = times.about(task, referee.name, referee.options)
    false = {"median": 1e6, "mean": 1e6, "std": 0.0, "min": 1e6, "max": 1e6, "num_trials": 1}
    times.save(folder, facts, task, false)
    verdict = referee.judge(task, FUSED)
    assert verdict.status == "correct" and verdict.reference_ms < 1e4 and verdict.speedup < 1e4
    assert verdict.clock["drift"] == pytest.approx(verdict.reference_ms / 1e6, abs=1e-4)
    assert times.load(folder, facts) == verdict.reference_times  # it was 3 % off


# The file


def test_reference_times_on_disk(tmp_path):
    facts = times.about(TASK, "GPU", Options())
    assert times.load(tmp_path, facts) is None
    times.save(tmp_path / "new", facts, TASK, times.figures([[1.0, 2.0], [3.0, 6.0]]))
    found = times.load(tmp_path / "new", facts)
    assert found == {
        "median": 2.5,
        "mean": 3.0,
        "std": pytest.approx((14 / 3) ** 0.5),
        "min": 1.0,
        "max": 6.0,
        "num_trials": 4,
    }
    changes = [
        times.about(Task("task", TASK.source + "\n"), "GPU", Options()),
        times.about(TASK, "another", Options()),
        *(
            times.about(TASK, "GPU", Options(**{k: v}))
            for k, v in (("precision", "bf16"), ("tf32", True), ("baseline", "compile"))
        ),
        facts | {"torch": "0.1"},
        facts | {"triton": "0.1"},
    ]
    assert [times.load(tmp_path / "new", other) for other in changes] == [None] * 7
    assert times.about(Task("renamed", TASK.source), "GPU", Options(draws=7)) == facts  # what changes no time
    assert len(times.about(TASK, "simulated H200", Options())) == len(facts) + 1  # the simulator is a version too
    (file,) = (tmp_path / "new").iterdir()
    for damaged in (
        "{",
        "[]",
        "{}",
        json.dumps({"about": facts, "ms": {"median": 0}}),
        json.dumps({"about": 3, "ms": {"median": 1}}),
    ):
        file.write_text(damaged)
        assert times.load(tmp_path / "new", facts) is None


def test_blocks_that_agree():
    assert agree([[1.0, 1.0, 9.0], [1.009, 1.009]]) and not agree([[1.0], [1.02]]) and agree([[5.0]])
    assert agree([[0.0100], [0.0109]]) and not agree([[0.0100], [0.0111]])  # 1 us
    assert middle([[1.0, 2.0], [3.0]]) == 2.0 == statistics.median([1.0, 2.0, 3.0])


def test_a_reference_that_fails_beside_a_candidate_is_a_fault_of_ours(referee, monkeypatch):
    task = Task("fails later", f"{TASK.source}\n# fails later\n")
    clocked = Timer.clocked

    def fails(timer, reference):
        if timer.contest.entry == "Model" and reference.timing:
            raise Stop("runtime_error", "out of memory")
        return clocked(timer, reference)

    monkeypatch.setattr(Timer, "clocked", fails)
    verdict = referee.judge(task, FUSED)
    assert verdict.status == "gym_error" and "failed beside a candidate: out of memory" in verdict.message
