"""What a process of its own costs a candidate: the same evaluations with the candidate in a thread of the referee's process.

All else is the same: the messages, the checks, the clock, compilation into a private folder. What falls away are the fork, its CUDA context, the
sandbox, the opening of shared memory, and the end of the process.
"""

import importlib
import os
import random
import secrets
import socket
import statistics
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm import tqdm

from kernelbench import wire
from kernelbench.channel import Channel, Closed
from kernelbench.contestant import Contestant
from kernelbench.judge import Options, Referee
from kernelbench.process import Exit, Process


class Turn(Channel):
    """A contestant's end: between a message and the wait for the next one no other thread's contestant works, since what surrounds a forward
    (the watch over launches) is the whole process's."""

    lock = threading.Lock()

    def __init__(self, sock):
        super().__init__(sock)
        self.lock.acquire()

    def recv(self, *args):
        self.lock.release()
        try:
            return super().recv(*args)
        finally:
            self.lock.acquire()


class Threads:
    """Stands in for a process.Zygote: its contestants are threads of this process, on streams of their own, one of which works at a time."""

    def __init__(self, device: str):
        self.device, self.dead, self.lock, self.exits = device, False, threading.Lock(), {}

    def ready(self) -> "Threads":
        return self

    def fork(self, config: dict) -> Process:
        ours, theirs = socket.socketpair()
        job, done = len(self.exits) + secrets.randbits(40), Exit()
        self.exits[job] = done
        threading.Thread(target=self._serve, args=(theirs, config, done), daemon=True).start()
        return Process(self, job, Channel(ours))

    def _serve(self, theirs: socket.socket, config: dict, done: Exit):
        channel = Turn(theirs)
        os.environ["TRITON_CACHE_DIR"] = os.path.join(config["folder"], "triton")
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                contestant = Contestant(channel, config)
                channel.send({"sandbox": {}})
                contestant.serve(lambda: None)
        except Closed:
            done.set_result(0)
        finally:
            channel.lock.release()

    def kill(self, job: int):
        """It ends when its channel is closed."""

    def close(self):
        pass


class Handles:
    """In place of wire._cuda: memory of this very process, which CUDA IPC does not open."""

    def __init__(self, plain):
        self.plain, self.places = plain, {}

    def __call__(self, name: str, *args):
        if name == "cuIpcOpenMemHandle_v2":
            args[0]._obj.value = self.places[bytes(args[1])]
        elif name != "cuIpcCloseMemHandle":
            self.plain(name, *args)
        if name == "cuIpcGetMemHandle":
            self.places[bytes(args[0]._obj)] = args[1].value


@dataclass
class Overhead:
    """Judge honest kernels one by one, in processes of their own as always and in a thread, on a GPU."""

    limit: int = 24
    """kernels of the corpus (tests/redteam/honest), by chance"""
    seed: int = 0

    def run(self):
        if not torch.cuda.is_available():
            sys.exit("bench.py: what a process costs is measured on a GPU, and there is none here")
        # of this process alone: a kernel that is loaded at its first use waits for all streams, and here for one that waits for this thread
        os.environ["CUDA_MODULE_LOADING"] = "EAGER"
        torch.zeros(1, device="cuda")
        os.environ["CUDA_MODULE_LOADING"] = "LAZY"
        sys.path.append(str(Path(__file__).resolve().parent / "tests"))
        cases = [c for c in importlib.import_module("redteam").load() if c.kind == "honest" and c.runs_on("cuda")]
        cases = random.Random(self.seed).sample(cases, min(self.limit, len(cases)))
        rows = {}
        try:
            for name in ("process", "thread"):
                self._judge(name, cases, rows)
        finally:  # what there is, after a Ctrl-C too
            print(report(rows, [case.name for case in cases]))

    def _judge(self, name: str, cases: list, rows: dict):
        plain, zygote = wire._cuda, Threads("cuda") if name == "thread" else None
        wire._cuda = Handles(plain) if zygote else plain
        referee = Referee("cuda", b"overhead", Options(), zygote)
        try:
            referee.judge(cases[0].task, cases[0].code)  # the first of all imports and loads more
            for case in tqdm(cases, desc=f"in a {name}", unit="kernel"):
                for cached in (False, True):
                    began = time.perf_counter()
                    verdict = referee.judge(case.task, f"{case.code}\n# {cached}\n")
                    rows[name, case.name, cached] = time.perf_counter() - began, verdict.status
                referee.references.clear()
                referee.baseline.clear()
        finally:
            referee.close()
            wire._cuda = plain


def report(rows: dict, names: list[str]) -> str:
    """rows: (seconds, status) by ("process" or "thread", kernel, whether the reference was known), as far as they were judged."""
    lines = ["s, median of n kernels that are judged alike   n   process   thread   difference   largest"]
    asked = [(cached, n) for cached in (False, True) for n in names]
    both = {(c, n): (rows["process", n, c], rows["thread", n, c]) for c, n in asked if ("thread", n, c) in rows}
    for cached in (False, True):
        alike = [(a, b) for (c, _), ((a, said), (b, too)) in both.items() if c == cached and said == too]
        alone = [rows["process", n, c][0] for c, n in asked if c == cached and ("process", n, c) in rows]
        what = "with the reference cached" if cached else "the reference timed first"
        if not alike:
            lines.append(f"{what}: none was judged in both ways alike")
            lines += [f"   {len(alone)} in a process: {statistics.median(alone):.2f}"] * bool(alone)
            continue
        more = [a - b for a, b in alike]
        middles = [statistics.median(column) for column in (*zip(*alike), more)]
        lines.append(
            f"{what:44} {len(alike):3}   {middles[0]:7.2f}   {middles[1]:6.2f}   {middles[2]:10.2f}   {max(more):7.2f}"
        )
    said = [(n, one[1], two[1]) for (_, n), (one, two) in both.items()]
    return "\n".join(lines + [f"{n}: {a} in a process, {b} in a thread" for n, a, b in said if a != b])
