import os
import socket
import threading
import time
import types

import pytest

from kernelbench.channel import Channel
from kernelbench.process import Died, Exit, Process, Stop, Turnstile, Zygote
from kernelbench.room import Room


@pytest.fixture
def contestant():
    """A process as the referee sees it, and the socket at its other end."""
    ours, theirs = socket.socketpair()
    zygote = types.SimpleNamespace(exits={1: Exit()}, dead=False, device="cpu")
    with ours, theirs:
        before = sorted(os.listdir("/proc/self/fd"))
        yield Process(zygote, 1, Channel(ours)), theirs
        assert sorted(os.listdir("/proc/self/fd")) == before, "descriptors leaked"


def frame(text: str, fds: int = 0) -> bytes:
    return len(text).to_bytes(4, "little") + bytes([fds]) + text.encode()


@pytest.mark.parametrize("do", ["load", "build", "warm", "profile"])
def test_descriptors_that_nobody_asked_for_are_closed(contestant, do):
    process, theirs = contestant
    socket.send_fds(theirs, [frame('{"a": 1}', 2)], [0, 0])
    assert process.ask({"do": do}) == ({"a": 1}, [])


def test_descriptors_of_outputs_are_handed_on_and_those_of_an_error_are_not(contestant):
    process, theirs = contestant
    socket.send_fds(theirs, [frame('{"error": {"text": "no"}}', 2)], [0, 0])
    with pytest.raises(Stop, match="no"):
        process.ask({"do": "call"})
    socket.send_fds(theirs, [frame("{}", 1)], [0])
    reply, (fd,) = process.ask({"do": "call"})
    os.close(fd)


@pytest.mark.parametrize(
    "do, error, status",
    [
        ("call", '{"type": "ValueError", "text": "words", "compile": false}', "runtime_error"),
        ("call", '{"type": "CompilationError", "text": "words", "compile": true}', "compile_error"),
        ("load", '{"type": "NameError", "text": "words", "compile": false}', "compile_error"),
        ("call", '{"unsupported": true, "text": "words"}', "unsupported"),
        ("call", '{"type": "Unsupported", "text": "words"}', "runtime_error"),
        ("call", '{"text": ["words"]}', "runtime_error"),
        *[
            ("call", error, "runtime_error")
            for error in ("5", "null", "[]", '"words"', "{}", '{"type": {}, "compile": []}')
        ],
    ],
)
def test_errors_of_any_form(contestant, do, error, status):
    process, theirs = contestant
    theirs.send(frame(f'{{"error": {error}}}'))
    with pytest.raises(Stop) as stop:
        process.ask({"do": do})
    assert stop.value.status == status and ("words" in stop.value.message or "words" not in error or error == '"words"')


def test_an_error_as_long_as_it_likes(contestant):
    process, theirs = contestant
    threading.Thread(target=theirs.sendall, args=(frame('{"error": {"text": "' + "x" * 10**6 + '"}}'),)).start()
    with pytest.raises(Stop) as stop:
        process.ask({"do": "call"})
    assert len(stop.value.message) == 4000


@pytest.mark.parametrize(
    "code, dead, error, words",
    [
        (-9, False, Stop, "killed by SIGKILL"),
        (3, False, Stop, "exit code 3"),
        (0, False, Stop, "exit code 0"),
        (None, False, Stop, "stopped answering"),
        (None, True, Died, "the process that runs kernels died"),
    ],
)
def test_deaths(contestant, code, dead, error, words):
    process, theirs = contestant
    process.zygote.dead = dead
    process.zygote.exits[1].set_result(code)
    theirs.shutdown(socket.SHUT_RDWR)
    with pytest.raises(error, match=words) as raised:
        process.ask({"do": "call"})
    assert error is Died or raised.value.status == "runtime_error"


def test_a_fork_that_cannot_be_asked_for_marks_the_zygote_dead(monkeypatch):
    """Whoever sees the death first: the next attempt must not ask the same zygote again."""
    monkeypatch.setattr(Zygote, "_listen", lambda zygote: None)  # it has not noticed yet
    zygote = Zygote("cpu")
    try:
        zygote.ready()
        zygote.process.kill()
        zygote.process.wait()
        assert not zygote.dead
        with pytest.raises(Died):
            for _ in range(9):
                zygote.fork({})
        assert zygote.dead
    finally:
        zygote.close()


def test_a_contestant_that_cannot_start_says_why():
    zygote = Zygote("cpu").ready()
    try:
        process = zygote.fork({"device": "cpu", "folder": "/nonexistent"})
        with pytest.raises(Died, match="could not be started: .*/nonexistent"):
            process.first(20)
        process.close()
    finally:
        zygote.close()


def state(pid: int) -> str:
    """R, S, T (stopped).., by the kernel."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_while_one_is_alone_the_others_stand_still(tmp_path):
    """And none is forked until it is over; a contestant that stands still can be killed."""
    zygote = Zygote("cpu").ready()
    config = {
        "device": "cpu",
        "tf32": False,
        "precision": "fp32",
        "compile": None,
        "simulate": "H200",
        "any_code": False,
    }

    def fork(name: str) -> Process:
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.py").write_text("class ModelNew: pass")
        return zygote.fork(config | {"folder": str(tmp_path / name), "path": str(tmp_path / name / "kernel.py")})

    def children() -> list[int]:
        with open(f"/proc/{zygote.process.pid}/task/{zygote.process.pid}/children") as file:
            return [int(pid) for pid in file.read().split()]

    def wait(until):
        for _ in range(500):
            if until():
                return True
            time.sleep(0.01)
        return False

    try:
        processes = [fork(name) for name in "abc"]
        for process in processes:
            process.first(20)
        pids = children()  # in the order of their birth
        with zygote.alone(processes[1].job):
            assert wait(lambda: [state(pid) == "T" for pid in pids] == [True, False, True])
            late = fork("d")
            assert processes[1].ask({"do": "load", "entry": "ModelNew"}) == ({}, [])
            assert processes[2].close() and wait(lambda: children() == pids[:2])
            processes[0].tell({"do": "load", "entry": "ModelNew"})
            assert not processes[0].answers(0.3) and not late.answers(0.0) and children() == pids[:2]
        assert processes[0].reply(20) == ({}, []) and late.first(20)
        assert len(children()) == 3 and all(state(pid) != "T" for pid in children())
        for process in (*processes[:2], late):
            process.close()
    finally:
        zygote.close()


def test_turnstile_keeps_the_timed_alone():
    turnstile, inside, worst, order = Turnstile(), [0, 0], [], []

    def visit(alone, times):
        for _ in range(times):
            with turnstile.exclusive() if alone else turnstile.shared():
                inside[alone] += 1
                worst.append(tuple(inside))
                order.append(alone)
                inside[alone] -= 1

    threads = [threading.Thread(target=visit, args=(i == 0, 300)) for i in range(4)]
    [thread.start() for thread in threads], [thread.join(60) for thread in threads]
    assert len(order) == 1200 and not any(shared and alone for shared, alone in worst)
    with turnstile.exclusive():
        pass
    with turnstile.shared(), turnstile.shared():
        pass


@pytest.mark.parametrize("patience, order", [(0.0, ["alone", "alone", "late"]), (30.0, ["late", "alone", "alone"])])
def test_those_who_want_to_be_alone_gather_and_then_come_before_all_others(patience, order):
    turnstile, seen, left = Turnstile(patience), [], threading.Event()

    def alone():
        with turnstile.exclusive():
            seen.append("alone")

    def late():
        with turnstile.shared():
            seen.append("late")
        left.set()

    threads = [threading.Thread(target=alone) for _ in range(2)] + [threading.Thread(target=late)]
    with turnstile.shared():
        for thread in threads:
            thread.start()
            time.sleep(0.1)
        assert left.wait(10 if patience else 0.1) == bool(patience)
    [thread.join(10) for thread in threads]
    assert seen == order


def test_room_is_given_in_order_and_to_whoever_is_alone():
    room, order, go = Room(10), [], {name: threading.Event() for name in "abcd"}

    def take(name: str, nbytes: int):
        with room.take(nbytes):
            order.append(name)
            go[name].wait(10)

    def until(n: int):
        deadline = time.monotonic() + 10
        while len(order) < n and time.monotonic() < deadline:
            time.sleep(0.001)

    threads = {}
    for name, nbytes in (("a", 6), ("b", 4), ("c", 25), ("d", 1)):  # c is more than there is, and d would fit before it
        threads[name] = threading.Thread(target=take, args=(name, nbytes))
        threads[name].start()
        until(len(threads)) if name in "ab" else time.sleep(0.05)
    assert order == ["a", "b"] and room.used == 10
    go["a"].set(), threads["a"].join(10), time.sleep(0.05)
    assert order == ["a", "b"]
    go["b"].set(), until(3), time.sleep(0.05)
    assert order == ["a", "b", "c"] and room.used == 25
    go["c"].set(), go["d"].set()
    for thread in threads.values():
        thread.join(10)
    assert order == ["a", "b", "c", "d"] and room.used == 0
