"""A dead process, a dead launcher, a stall, a request to stop: by hand with a clock of our own, and with real processes."""

import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
import ranks
import torch
from test_train import QUICK, FakeGym, command, fake_verdict, numbers_of
from torch.distributed import HashStore, TCPStore

import processes
import watchdog
from checkpoint import RunError, checkpoints
from watchdog import SILENT, SILENT_WHILE_STOPPING, Watchdog

ROOT = Path(__file__).resolve().parents[1]

# --- By hand


class Told:
    """A Stop without signals."""

    at = None

    def ask(self):
        self.at = 1.0

    def poll(self):
        pass

    def check(self):
        pass


class Pack:
    """Watchdogs of several ranks on one clock and one store, moved by hand."""

    def __init__(self, out: Path, world: int, stall: float = 1e9):
        self.now, self.said, store = 0.0, {}, HashStore()
        self.dogs = [
            Watchdog(
                out, stall, Told(), store, (RunError,), rank=r, world=world, clock=lambda: self.now, end=self.end(r)
            )
            for r in range(world)
        ]

    def end(self, rank):
        return lambda sentence: self.said.setdefault(rank, (self.now, sentence))

    def go(self, seconds: float, *, dead=(), busy=()):
        for _ in range(round(seconds / 2)):
            self.now += 2
            for rank, dog in enumerate(self.dogs):
                if rank not in dead and rank not in self.said:
                    dog.progress = self.now if rank in busy else dog.progress
                    dog.talk()
            for rank, dog in enumerate(self.dogs):
                if rank not in dead and rank not in self.said:
                    dog.look()


def test_a_process_that_falls_silent_ends_the_others(tmp_path):
    pack = Pack(tmp_path, 3)
    pack.go(600)
    assert not pack.said
    pack.go(60, dead={2})
    assert set(pack.said) == {0, 1}
    for when, sentence in pack.said.values():
        assert 600 + SILENT <= when <= 600 + SILENT + 4 < 660  # within a minute
        assert (
            "process 2 on " in sentence and "has died" in sentence and "--resume" in sentence and "\n" not in sentence
        )


def test_one_that_never_came(tmp_path):
    pack = Pack(tmp_path, 3)
    pack.go(60, dead={1})
    assert "process 1 has died" in pack.said[0][1] and "process 1 has died" in pack.said[2][1]


def test_silence_is_found_sooner_while_stopping(tmp_path):
    """torchrun asks the others to stop when one has died, and kills them half a minute later."""
    pack = Pack(tmp_path, 2)
    pack.go(10)
    pack.dogs[0].stop.ask()
    pack.go(30, dead={1})
    assert pack.said[0][0] <= 10 + SILENT_WHILE_STOPPING + 4 < 10 + 30


def test_a_process_that_stood_still_itself_concludes_nothing(tmp_path):
    pack = Pack(tmp_path, 2)
    pack.go(10)
    pack.now += 3600  # a laptop's lid, a suspended job: all of them
    pack.go(20)
    assert not pack.said


def test_an_error_is_told_to_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(watchdog, "TICK", 1e-3)
    pack = Pack(tmp_path, 3)
    with pytest.raises(OSError), pack.dogs[1]:
        raise OSError("no such disk\nand more")
    pack.go(2, dead={1})
    for rank in (0, 2):
        assert pack.said[rank][0] == 2 and "(OSError: no such disk)" in pack.said[rank][1]


def test_an_error_that_all_raise_is_not_told(tmp_path, monkeypatch):
    monkeypatch.setattr(watchdog, "TICK", 1e-3)
    pack = Pack(tmp_path, 2)
    with pytest.raises(RunError), pack.dogs[1]:
        raise RunError("no room")
    pack.go(2, dead={1})
    assert not pack.said


def test_a_process_does_not_outlive_torchrun(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    pack = Pack(tmp_path, 2)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    pack.go(4)
    assert not pack.said
    pack.dogs[0].launcher = None
    monkeypatch.setattr(watchdog.os, "getppid", lambda: 1)
    pack.go(4)
    assert "torchrun" in pack.said[1][1] and "process 1 on" in pack.said[0][1] and "torchrun is gone" in pack.said[0][1]


def test_a_store_that_is_gone(tmp_path):
    pack = Pack(tmp_path, 2)

    class Gone:
        def set(self, *_):
            raise RuntimeError("Connection reset by peer\ntrace")

    pack.dogs[1].board = Gone()
    pack.go(2)
    assert "Connection reset by peer" in pack.said[1][1] and "trace" not in pack.said[1][1]


def test_a_stall_is_written_down_once_by_all(tmp_path, capsys):
    pack = Pack(tmp_path, 2, stall=600)
    pack.go(1200, busy={1})  # process 0 waits for a process that is busy
    assert not (tmp_path / "stalls").exists()
    pack.go(1200)
    assert "no process has made progress for 10 minutes" in capsys.readouterr().out.lower()
    for rank in range(2):
        text = (tmp_path / "stalls" / f"process_{rank}.txt").read_text()
        assert text.count("no progress for 10 minutes") == 1
        assert "test_a_stall_is_written_down_once_by_all" in text  # where this process is
    pack.go(10, busy={0})
    pack.go(620)
    assert (tmp_path / "stalls" / "process_0.txt").read_text().count("no progress for 10 minutes") == 2
    assert not pack.said  # it may go on
    Pack(tmp_path / "stalls" / "process_0.txt", 1, stall=600).go(620)  # no folder: a disk that refuses
    assert "could not be written" in capsys.readouterr().out


def test_a_file_stops_all(tmp_path):
    pack = Pack(tmp_path, 3)
    pack.go(4)
    assert all(dog.stop.at is None for dog in pack.dogs)
    (tmp_path / "stop").touch()
    pack.go(4)
    assert all(dog.stop.at is not None for dog in pack.dogs) and not pack.said


def test_a_file_that_stopped_a_run_does_not_stop_the_next(tmp_path):
    """Step 1 is given up at once; when the run goes on, the file is gone."""
    out = tmp_path / "run"

    def touch(call):
        if call == 3:
            (out / "stop").touch()
            until = time.monotonic() + 60
            while not stops[-1].at and time.monotonic() < until:
                time.sleep(0.01)

    stops = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watchdog, "TICK", 0.05)
        patch.setattr(processes.Stop, "__enter__", lambda stop: stops.append(stop) or stop)
        command("--out", out, gym=FakeGym(touch))
        assert [folder.name for folder in checkpoints(out)] == ["step_000000"]
        command("--resume", out, "--steps", "1", quick=False)
    assert [line["step"] for line in numbers_of(out)] == [0, 1, 1]


# --- Real processes


class ByTask(FakeGym):
    """Verdicts by task and place within it: the same however the tasks are spread over processes."""

    def as_completed(self, jobs):
        self.calls += 1
        self.before(self.calls)
        seen = {}
        for i, job in enumerate(jobs):
            place = seen[job.task.name] = seen.get(job.task.name, -1) + 1
            yield i, fake_verdict(zlib.crc32(job.task.name.encode()) % 5 + place)


GREEDY = [
    "--top-p",
    "1e-9",
    "--eval-top-p",
    "1e-9",
    "--save-every",
    "1",
]  # the same answers whichever process gives them


def a_rank(out: Path, rank: int, call: int, number: int, silent: float) -> None:
    """train.py as one rank; rank `rank` sends itself the signal at its gym's call `call`."""
    import train

    def before(now):
        if now == call and train.RANK == rank:
            os.kill(os.getpid(), number)
        if now == call:
            watchdog.SILENT = silent

    train.Gym = lambda **_: ByTask(before)
    sys.argv = ["train.py", *QUICK, *GREEDY, "--out", str(out)]
    train.main()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])  # its connections are closed; they stay open
def test_a_rank_that_dies_in_mid_step(tmp_path, number):
    """Calls 1 and 2: the evaluation; 3 and 4: step 1; 5: in step 2. The run then goes on with one process."""
    two = ranks.start(2, a_rank, tmp_path / "run", 1, 5, number, 4.0, log=tmp_path)
    two[0].join(240)
    said = (tmp_path / "0.txt").read_text()
    assert two[0].exitcode == 1, said
    assert number == signal.SIGSTOP or two[1].exitcode == -number
    ranks.finish(two, 0.1)
    (sentence,) = [line for line in said.splitlines() if "process 0 of 2 ends" in line]
    assert "--resume" in sentence and "Traceback" not in said
    assert [line["step"] for line in numbers_of(tmp_path / "run")] == [0, 1]
    if number == signal.SIGKILL:
        command("--resume", tmp_path / "run", gym=ByTask(), quick=False)
        assert [line["step"] for line in numbers_of(tmp_path / "run")] == [0, 1, 2, 3, 3]


def test_one_of_two_is_told_to_stop(tmp_path):
    """SIGTERM to rank 1 alone, in the middle of step 2: both save step 1 and end well."""
    two = ranks.start(2, a_rank, tmp_path / "run", 1, 5, signal.SIGTERM, 60.0, log=tmp_path)
    assert ranks.finish(two) == [0, 0], (tmp_path / "0.txt").read_text()
    assert "Stopped after step 1" in (tmp_path / "0.txt").read_text()
    assert [folder.name for folder in checkpoints(tmp_path / "run")] == ["step_000000", "step_000001"][-1:]


def a_rank_on_a_gpu(out: Path) -> None:
    """Rank 1 dies in step 2 while rank 0 is on its way into a collective of NCCL, which nothing ends."""
    import train

    real, calls = train.accumulate_gradients, [0]

    def dying(*args, **kwargs):
        calls[0] += 1
        if calls[0] == 2 and train.RANK == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    train.accumulate_gradients = dying
    train.Gym = lambda **_: ByTask()
    sys.argv = ["train.py", *QUICK, *GREEDY, "--device", "cuda", "--dtype", "bf16", "--out", str(out)]
    train.main()


@pytest.mark.gpu
def test_a_rank_that_dies_beside_nccl(tmp_path):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    two = ranks.start(2, a_rank_on_a_gpu, tmp_path / "run", log=tmp_path)
    two[1].join(240)
    assert two[1].exitcode == -signal.SIGKILL, (tmp_path / "1.txt").read_text()
    two[0].join(60)
    assert two[0].exitcode not in (0, None), "still there after a minute"
    ranks.finish(two, 0.1)
    assert "process 0 of 2 ends" in (tmp_path / "0.txt").read_text()
    assert [line["step"] for line in numbers_of(tmp_path / "run")] == [0, 1]


def a_rank_that_cannot_start(out: Path) -> None:
    if processes.RANK == 1:
        sys.argv = ["train.py", "--resume", str(out / "none")]
        import train

        train.main()
    else:
        a_rank(out, 0, 99, 0, 60.0)


def test_a_rank_that_cannot_start(tmp_path):
    """As on a second machine that does not see the folder: the others do not wait for it."""
    port = ranks.free_port()
    store = TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    two = ranks.start(2, a_rank_that_cannot_start, tmp_path, log=tmp_path, port=port)
    assert ranks.finish(two) == [1, 1] and store.check(["failed"])
    assert "process 1 on" in (said := (tmp_path / "0.txt").read_text()) and "holds no run" in said
    assert "Traceback" not in said


LAUNCHED = """
import sys, time
sys.path[:0] = [{root!r}, {tests!r}]
import train
from test_watchdog import ByTask
train.Gym = lambda **_: ByTask(lambda call: time.sleep(600) if call == 7 else None)
train.main()
"""


def test_two_launchers(tmp_path, whole_greedy):
    """Two torchruns as of two machines: the numbers of one process; when one of them is killed in step 3, nothing is left."""
    script, out = tmp_path / "drive.py", tmp_path / "run"
    script.write_text(LAUNCHED.format(root=str(ROOT), tests=str(ROOT / "tests")))
    launch = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d"]
    launch += [f"--rdzv-endpoint=localhost:{ranks.free_port()}", "--rdzv-id=x", "--local-addr=localhost", str(script)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": env}
    command_line = [*launch, *QUICK, *GREEDY, "--out", str(out)]
    launchers = [subprocess.Popen(command_line, **pipes) for _ in range(2)]
    try:
        until = time.monotonic() + 300
        while len(checkpoints(out)) < 2 or checkpoints(out)[-1].name != "step_000002":
            assert time.monotonic() < until and all(p.poll() is None for p in launchers)
            time.sleep(0.1)
        launchers[1].kill()
        texts = [p.communicate(timeout=120)[0] for p in launchers]  # their ranks hold the pipes too
    finally:
        for process in launchers:
            process.kill()
    assert launchers[0].returncode == 1
    assert sum("its launcher, torchrun, is gone" in text for text in texts) == 1
    told = "has ended (torchrun is gone)", "the connection to another process broke"  # whichever comes first
    assert sum(any(sentence in text for sentence in told) for text in texts) == 1
    found, expected = numbers_of(out), numbers_of(whole_greedy)[:3]
    assert [line["step"] for line in found] == [0, 1, 2] and found[2]["policy/grad_norm"] > 0
    for line, other in zip(found, expected, strict=True):
        assert line.keys() == other.keys()
        for name in line.keys() - {n for n in line if line[n] is None}:
            assert line[name] == pytest.approx(other[name], rel=1e-5, abs=1e-7), (line["step"], name)


@pytest.fixture(scope="module")
def whole_greedy(tmp_path_factory):
    out = tmp_path_factory.mktemp("greedy") / "run"
    command("--out", out, *GREEDY, "--steps", "2", gym=ByTask())
    return out
