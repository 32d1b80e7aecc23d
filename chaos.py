"""A long run of candidates of all sorts while referees and zygotes are killed: `python bench.py chaos`.

Every job must end in exactly one verdict, honest and wrong ones in the right one, and nothing may be left over: processes, threads, file
descriptors, temporary folders, shared memory, GPU memory.
"""

import collections
import contextlib
import os
import random
import secrets
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm import tqdm

from gym import Gym, Job
from kernelbench import Task
from kernelbench.judge import Options

TASK = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return torch.tanh(torch.relu(x * 1.5) + y)


def get_inputs():
    return [torch.randn(64, 300), torch.randn(64, 300)]


def get_init_inputs():
    return []
"""
CODE = """import os, sys, time, tempfile, threading
import torch
import torch.nn as nn
import triton
import triton.language as tl

OUTSIDE, SERIAL = {outside!r}, {serial}
hidden = lambda *parts: getattr(os, "".join(parts))


def everywhere(name):
    for folder in (".", tempfile.gettempdir(), os.environ["HOME"], OUTSIDE, "/dev/shm"):
        try:
            with open(os.path.join(folder, f"{{name}}-{{SERIAL}}"), "w") as file:
                file.write("x" * 100_000)
        except OSError:
            pass


def signals():
    for pid in (os.getppid(), *[-1] * (os.getpid() == 1)):  # -1, everybody: only in a PID namespace
        try:
            hidden("ki", "ll")(pid, 9)
        except OSError:
            pass


@triton.jit
def chain_kernel(x_ptr, y_ptr, o_ptr, n, FACTOR: tl.constexpr, FAR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(o_ptr + i + FAR, 2.0 * tl.sigmoid(2.0 * (tl.maximum(x * FACTOR, 0.0) + y)) - 1.0, mask=i < n)


class ModelNew(nn.Module):
    calls, factor, far = 0, 1.5, 0

    def forward(self, x, y):
        self.calls += 1
        {inside}
        o = torch.empty_like(x)
        chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), self.factor, self.far, BLOCK=1024)
        return o


{outset}
"""
ANY = "correct compile_error runtime_error hack timeout unsupported"  # where only the others must not suffer
# kind -> how many of 100, at import, in forward, the statuses that are right
KINDS = {
    "honest": (40, "", "pass", "correct"),
    "wrong": (8, "", "self.factor = 1.6", "wrong"),
    "raises": (4, "", "raise ValueError('oops')", "runtime_error"),
    "does not parse": (3, "(", "pass", "compile_error"),
    "no class": (2, "del ModelNew", "pass", "compile_error no_code runtime_error"),
    "aborts": (4, "", "os.abort()", "runtime_error"),
    "segfault": (3, "", "import numpy as np; np.lib.stride_tricks.as_strided(np.zeros(1), (1 << 30,), (1 << 20,)).sum()", "runtime_error"),
    "exits": (3, "", "hidden('_ex', 'it')(0)", "runtime_error"),
    "far store": (4, "", "self.far = 1 << 40", "runtime_error"),
    "hangs": (3, "", "time.sleep(1000 * (self.calls > 1))", "timeout"),
    "spins": (2, "", "while self.calls > 1: pass", "timeout"),
    "hungry": (4, "", "torch.empty(1 << 44, dtype=torch.uint8, device=x.device)", "runtime_error"),
    "forks": (4, "hidden('fo', 'rk')() or (hidden('set', 'sid')(), time.sleep(1000))", "pass", ANY),
    "forks and dies": (3, "", "hidden('fo', 'rk')() or time.sleep(1000); hidden('_ex', 'it')(3)", ANY),
    "signals": (4, "signals()", "pass", ANY),
    "writes": (3, "everywhere('chaos-stray')", "pass", ANY),
    "poisons": (
        3,
        "",
        "[open(os.path.join(f, n), 'w').write('poison') for d in (os.environ['TRITON_CACHE_DIR'], '/root/.triton', '/tmp')"
        " for f, _, ns in os.walk(d) for n in ns if n.endswith(('cubin', 'json', 'ttir', 'so'))]",
        ANY,
    ),
    "holds files": (2, "", "self.files = [open(os.devnull) for _ in range(500)]", ANY),
    "threads": (1, "threading.Thread(target=lambda: [time.sleep(0.01) for _ in range(10**6)], daemon=True).start()", "pass", ANY),
}  # fmt: skip


@dataclass
class Chaos:
    """Judge a mix of honest, wrong and hostile candidates while referees and zygotes are killed; then look for what is left over."""

    n: int = 2000
    """evaluations"""
    kills: int | None = None
    """referees and zygotes killed on the way; default: one in 200 evaluations, at least 2"""
    workers: int | None = None
    """contestants at a time per device; default: the gym's own"""
    device: str | None = None
    """cuda or cpu; default: the GPU if there is one"""
    call_s: float = 5.0
    """seconds until a hanging forward is given up"""
    seed: int = 0

    def run(self) -> int:
        rng, mark = random.Random(self.seed), secrets.token_hex(8)
        shares = [kind for kind, (share, *_) in KINDS.items() for _ in range(share)]
        kinds = [*KINDS, *rng.choices(shares, k=self.n)][: self.n]
        rng.shuffle(kinds)
        kills = max(2, self.n // 200) if self.kills is None else self.kills
        moments = set(rng.sample(range(1, max(2, self.n * 9 // 10)), min(kills, self.n // 2)))
        verdicts, killed, counts = {}, collections.Counter(), collections.Counter()
        with tempfile.TemporaryDirectory(prefix="chaos-") as scratch:
            outside, temporary = os.path.join(scratch, "outside"), os.path.join(scratch, "tmp")
            os.mkdir(outside), os.mkdir(temporary)
            os.environ |= {"TMPDIR": temporary, MARK: mark}
            task, options = Task("chaos", TASK), Options(load_s=40, build_s=40, call_s=self.call_s)
            jobs = [Job(task, candidate(kind, outside, i)) for i, kind in enumerate(kinds)]
            torch.cuda.device_count()  # opens files of the driver
            tqdm.monitor_interval = 0  # no thread of its own
            before, begin = remains(mark, temporary), time.perf_counter()
            with Gym(self.device, workers=self.workers, seed=self.seed, options=options) as gym:
                for index, verdict in tqdm(gym.as_completed(jobs), total=self.n, desc="chaos", unit="kernel"):
                    counts[index] += 1
                    verdicts[index] = verdict
                    if len(verdicts) in moments:
                        killed[kill_one(rng, gym, sum(killed.values()) % 2)] += 1
            seconds, deadline = time.perf_counter() - begin, time.monotonic() + 15
            while (off := more(before, after := remains(mark, temporary))) and time.monotonic() < deadline:
                time.sleep(0.5)
            stray = [*os.listdir(outside), *(name for name in os.listdir("/dev/shm") if name.startswith(STRAY))]
        for name in stray:
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join("/dev/shm", name))
        for process in after["processes"]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process.split()[0]), signal.SIGKILL)
        if set(counts) != set(range(self.n)) or set(counts.values()) != {1}:
            off.append(f"verdicts: {self.n - len(counts)} missing, {sum(c > 1 for c in counts.values())} twice")

        died = "; ".join(f"{count} {what} killed" for what, count in killed.items()) or "nobody killed"
        print(f"{self.n} evaluations in {seconds:.0f} s on {gym.device}, {self.n / seconds:.2f} per second; {died}\n")
        gone = {i for i, v in verdicts.items() if v.status == "gym_error" and any(word in v.message for word in GONE)}
        print(f"{'kind':16} {'n':>4} {'off':>4}  statuses")
        for kind, (_, _, _, right) in KINDS.items():
            mine = [i for i in verdicts if kinds[i] == kind]
            wrong = [verdicts[i] for i in mine if verdicts[i].status not in right.split() and i not in gone]
            statuses = collections.Counter(verdicts[i].status for i in mine).most_common()
            print(f"{kind:16} {len(mine):4} {len(wrong):4}  {', '.join(f'{status} {n}' for status, n in statuses)}")
            off += [f"{kind}: {v.status} instead of {right}: {v.message[:200]!r}" for v in wrong]
        print(f"\ngiven up as gym_error because a referee or zygote was killed twice: {len(gone)}")
        if (
            len(gone) > max(0, sum(killed.values()) - 1) * gym.seats[0].setup[-1]
        ):  # as many as can be in flight at a kill
            off.append(f"{len(gone)} jobs given up after {sum(killed.values())} kills")
        if stray:
            layers = next((v.sandbox for v in verdicts.values() if v.sandbox), {})
            landlock = any("landlock" in layer.lower() and state == "on" for layer, state in layers.items())
            text = f"{len(stray)} files were written outside the candidates' folders"
            off.append(text) if landlock else print(f"{text}: file access is not confined here")
        for what, was in before.items():
            print(
                f"{what:18} {' -> '.join('?' if n is None else str(n if isinstance(n, int) else len(n)) for n in (was, after[what]))}"
            )
        print("\n".join(f"OFF: {text}" for text in off) or "nothing is off")
        return 1 if off else 0


GONE = ("died", "could not be started")  # what the gym says of jobs that lost their referee or zygote
STRAY = "chaos-stray"
MARK = "PYTHONCHAOSRUN"  # an environment variable that a zygote inherits: whoever has it belongs to the run


def candidate(kind: str, outside: str, serial: int) -> str:
    _, outset, inside, _ = KINDS[kind]
    return CODE.format(outside=outside, serial=serial, inside=inside, outset=outset)


def kill_one(rng: random.Random, gym: Gym, zygote: bool) -> str:
    """Kill the referee of some seat, or its zygote where it has one yet; what was killed."""
    referee = rng.choice(gym.seats).process.pid
    zygotes = [pid for pid, parent in parents().items() if parent == referee] if zygote else []
    with contextlib.suppress(ProcessLookupError):
        os.kill(zygotes[0] if zygotes else referee, signal.SIGKILL)
    return "zygotes" if zygotes else "referees"


def parents() -> dict[int, int]:
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            found[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def command(pid: int) -> str:
    """The command line of a process, empty once it is a zombie or gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")[:200].decode(errors="replace")
    return ""


def remains(mark: str, temporary: str) -> dict:
    """All that a run could leave behind: processes of the run and zombies of ours, and what else must be as before."""
    processes = []
    for pid, parent in parents().items():
        with contextlib.suppress(OSError):
            marked = f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
            if pid != os.getpid() and (marked or parent == os.getpid()):
                processes.append(f"{pid} {command(pid)}")
    smi = subprocess.run(
        ["sh", "-c", "nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "processes": processes,
        "threads": threading.active_count(),
        "file descriptors": len(os.listdir("/proc/self/fd")),
        "temporary folders": sorted(os.listdir(temporary)),
        # but for what Python's multiprocessing makes, here or in somebody else's process
        "shared memory": sorted(n for n in os.listdir("/dev/shm") if not n.startswith((STRAY, "sem.mp-"))),
        "GPU memory, MiB": sum(map(int, smi.stdout.split())) if smi.returncode == 0 else None,
    }


def more(before: dict, after: dict) -> list[str]:
    """What is there that was not; GPU memory may differ by 64 MiB."""
    memory = "GPU memory, MiB"
    off = [
        f"{what}: {after[what]} instead of {was}"
        for what, was in before.items()
        if what != memory and after[what] != was
    ]
    grown = before[memory] is not None and (after[memory] or 0) > before[memory] + 64
    return off + [f"{memory}: {after[memory]} instead of {before[memory]}"] * grown
