"""How fast and how true the judging is: `python bench.py gym` and `python bench.py timing`, other evaluators beside ours where checkouts are named."""

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm import tqdm

import peers
from gym import Gym, Job, reference_code
from kernelbench import Task, load_tasks
from kernelbench.judge import Verdict

LAUNCH_BOUND = 0.020  # ms: below it A/A figures are not counted
KERNELBENCH = ("level1/19", "level1/23", "level1/36", "level2/12", "level2/1", "level3/1")
DOUBLED = """{source}

import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, x + x, mask=i < n)


def double(x):
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return x
    x = x.contiguous()
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out * 0.5


class ModelNew(Model):
    def forward(self, *inputs):
        return super().forward(*map(double, inputs))


# variant {number}
"""


def candidate(task: Task, number: int) -> str:
    """A right solution of any task with float inputs that takes the whole way through a judge: they are doubled by a Triton kernel and halved
    by the library, before the task's own forward. Each number is another text."""
    return DOUBLED.format(source=task.source, number=number)


def kept(path: Path | None) -> list[dict]:
    """The rows of an interrupted run, whose last line may be cut off and is removed."""
    if not path or not path.exists():
        return []
    whole = path.read_text().rpartition("\n")[0]
    path.write_text(whole + "\n" * bool(whole))
    return [json.loads(line) for line in whole.splitlines()]


def keep(path: Path | None, row: dict) -> dict:
    if path:
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
    return row


def median(values) -> float | None:
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


# ---------------------------------------------------------------------------------------------------------------------------


@dataclass
class Pace:
    """Seconds of a cold evaluation and evaluations per GPU-hour, here and (cold only) by KernelBench's and KernelGYM's evaluators."""

    kernelbench: Path | None = None
    """a checkout of github.com/ScalingIntelligence/KernelBench: its tasks level1/19, 23, 36, level2/12, 1 and level3/1, and its evaluator"""
    kernelgym: Path | None = None
    """a checkout of github.com/hkust-nlp/KernelGYM"""
    tasks: tuple[str, ...] = ("level1", "level2")
    """tasks whose candidates are judged in bulk"""
    limit: int = 8
    """so many of them, evenly spread"""
    candidates: int = 48
    """of each task, all right"""
    theirs: bool = True
    """judge KernelBench's tasks in bulk too, where a checkout is named"""
    device: str | None = None
    """cuda or cpu; default: the GPU if there is one; the other evaluators need a GPU"""
    gpus: tuple[int, ...] | None = None
    """which of the visible GPUs; default: all"""
    workers: int | None = None
    """contestants at a time per device; default: the gym's own"""
    seconds: float = 300.0
    """time limit of one evaluation of the others"""
    rows: Path | None = None
    """append each cold evaluation to this file as it comes; what is there already is not measured again"""
    seed: int = 0

    def run(self):
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        if device == "cpu" and (self.kernelbench or self.kernelgym):
            sys.exit("bench.py: the tasks and evaluators of KernelBench and KernelGYM need a GPU")
        own = spread(load_tasks(*self.tasks, device=device), self.limit)
        named = [f"{self.kernelbench}/{name}" for name in KERNELBENCH] if self.kernelbench else []
        known = load_tasks(*named, device=device) if named else []
        rows = {(row["who"], row["task"], row["device"]): row for row in kept(self.rows)}
        who = ["ours", *(peer for peer in peers.PEERS if getattr(self, peer))]
        pairs = [(peer, task) for peer in who for task in known or own[:2]]
        for peer, task in tqdm(pairs, desc="cold", unit="evaluation"):
            if (peer, task.name, device) not in rows:
                said = self.cold(task, device) if peer == "ours" else self.theirs_cold(peer, task)
                rows[peer, task.name, device] = keep(
                    self.rows, {"who": peer, "task": task.name, "device": device} | said
                )
        print(f"one cold evaluation, seconds ({device}); the other evaluators in a fresh process each\n")
        for task in known or own[:2]:
            for peer in who:
                row = rows[peer, task.name, device]
                spent = ", ".join(f"{name} {s:.2f}" for name, s in row["phases"].items() if s >= 0.005)
                right = "" if row["correct"] else f"  NOT CORRECT: {row['note'][:100]}"
                if peer != "ours":  # beside ours from nothing, and in a gym that runs
                    ours = rows["ours", task.name, device]
                    more = [row["seconds"] / s for s in (ours["seconds"], ours["seconds"] - ours["phases"]["start"])]
                    spent += f"  ({more[0]:.1f} times ours, {more[1]:.1f} times without its start)"
                print(f"{task.name:34} {peer:12} {row['seconds']:8.2f}  {spent}{right}")
        self.sustained("our own tasks", own, device)
        if known and self.theirs:
            self.sustained("KernelBench's tasks", known, device)

    def cold(self, task: Task, device: str) -> dict:
        """From nothing to a verdict; and the next candidate of the same task."""
        begin = time.perf_counter()
        with Gym(device, gpus=(self.gpus or (0,))[:1] if device == "cuda" else None, workers=1, seed=self.seed) as gym:
            first = gym.evaluate([Job(task, candidate(task, 0))])[0]
            seconds = time.perf_counter() - begin
            second = gym.evaluate([Job(task, candidate(task, 1))])[0]
        inside = {k: v for k, v in first.seconds.items() if k != "total"}
        phases = {"start": seconds - first.seconds["total"]} | inside | {"(the next one)": second.seconds["total"]}
        return {"seconds": seconds, "phases": phases, "correct": first.correct, "note": first.message[:300]}

    def theirs_cold(self, peer: str, task: Task) -> dict:
        path = str(getattr(self, peer))
        load = peers.ask(peer, path, {"do": "load"}, self.seconds)
        said = peers.opinion(peer, path, task.source, candidate(task, 0), {}, (5, 100), self.seconds)
        phases = {"start and imports": load.seconds, "evaluation": said.seconds - load.seconds}
        return {"seconds": said.seconds, "phases": phases, "correct": said.correct, "note": said.note}

    def sustained(self, what: str, tasks: list[Task], device: str):
        """Everything included but the start of the referees."""
        jobs = [Job(task, candidate(task, i)) for task in tasks for i in range(self.candidates)]
        with Gym(device, gpus=self.gpus, workers=self.workers, seed=self.seed) as gym:
            gym.evaluate([Job(tasks[0], None)])  # the referees are up
            begin = time.perf_counter()
            verdicts = gym.evaluate(jobs, progress=True)
            seconds, seats = time.perf_counter() - begin, len(gym.seats)
        right = sum(v.correct for v in verdicts)
        rate = 3600 * right / seconds / seats
        print(
            f"\n{what}: {len(jobs)} candidates, {self.candidates} of each of {len(tasks)} tasks, {right} correct, in {seconds:.1f} s "
            f"on {seats} x {verdicts[0].device}: {rate:.0f} right evaluations per {'GPU' if device == 'cuda' else 'machine'}-hour"
        )
        print(f"mean seconds of an evaluation (several run at a time): {phases_of(verdicts)}")
        for text, n in Counter(f"{v.status}: {v.message[:120]!r}" for v in verdicts if not v.correct).most_common(5):
            print(f"  {n} x {text}")


def spread(tasks: list[Task], n: int) -> list[Task]:
    """n of the tasks, evenly over the list."""
    return tasks if n >= len(tasks) else [tasks[i * len(tasks) // n] for i in range(n)]


def phases_of(verdicts: list[Verdict]) -> str:
    names = dict.fromkeys(name for v in verdicts for name in v.seconds)
    means = {name: statistics.mean(v.seconds.get(name, 0.0) for v in verdicts) for name in names}
    return ", ".join(f"{name} {s:.3f}" for name, s in means.items())


# ---------------------------------------------------------------------------------------------------------------------------


@dataclass
class Timing:
    """A/A: tasks judged against themselves, several times over; and the coverage of known kernels."""

    tasks: tuple[str, ...] = ("level1",)
    limit: int = 48
    """so many of them, evenly spread"""
    rounds: int = 3
    kernelbench: Path | None = None
    """a checkout of github.com/ScalingIntelligence/KernelBench: the same by its evaluator"""
    peer_limit: int = 48
    """so many of the tasks by its evaluator"""
    perf_trials: int = 100
    """its timing trials (its scripts' default)"""
    device: str | None = None
    """cuda or cpu (simulated times); default: the GPU if there is one"""
    gpus: tuple[int, ...] | None = None
    workers: int | None = None
    """contestants at a time per device; default: the gym's own"""
    seconds: float = 300.0
    """time limit of one evaluation of the other"""
    rows: Path | None = None
    """append each result to this file as it comes; what is there already is not measured again"""
    seed: int = 0

    def run(self):
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        if device == "cpu" and self.kernelbench:
            sys.exit("bench.py: KernelBench's evaluator needs a GPU")
        tasks = spread(load_tasks(*self.tasks, device=device), self.limit)
        rows = {(row["who"], row["task"], row["round"], row["device"]): row for row in kept(self.rows)}
        for n in range(self.rounds):
            left = [task for task in tasks if ("ours", task.name, n, device) not in rows]
            for row in self.ours(left, n, device) if left else []:
                rows["ours", row["task"], n, device] = keep(self.rows, row)
        chosen = spread(tasks, self.peer_limit) if self.kernelbench else []
        for task, n in tqdm(list(itertools.product(chosen, range(self.rounds))), desc="KernelBench", unit="task"):
            if ("kernelbench", task.name, n, device) not in rows:
                rows["kernelbench", task.name, n, device] = keep(self.rows, self.peer(task, n, device))
        names = {task.name for task in tasks}
        for who in ("ours", "kernelbench"):
            mine = [r for r in rows.values() if (r["who"], r["device"]) == (who, device) and r["task"] in names]
            if mine := [r for r in mine if r["round"] < self.rounds]:
                print(
                    f"\n{who}: {len({r['task'] for r in mine})} tasks against themselves, {self.rounds} times, {device}"
                )
                print("\n".join(f"  {what:58} {value}" for what, value in figures(mine)))
        self.coverage(device)

    def ours(self, tasks: list[Task], n: int, device: str):
        """A fresh referee for each round."""
        gpus = self.gpus if device == "cuda" else None
        with Gym(device, gpus=gpus, workers=self.workers, seed=self.seed + n, any_code=True) as gym:
            jobs = [Job(task, reference_code(task)) for task in tasks]
            for index, v in tqdm(gym.as_completed(jobs), total=len(jobs), desc=f"A/A, round {n + 1}", unit="task"):
                yield {
                    "who": "ours",
                    "task": tasks[index].name,
                    "round": n,
                    "device": device,
                    "status": v.status,
                    "speedup": v.speedup if v.correct else None,
                    "ci": v.speedup_ci,
                    "ms": v.kernel_ms,
                    "reference_ms": v.reference_ms,
                    "clock": v.clock,
                    "seconds": v.seconds.get("total"),
                    "note": v.message[:200],
                }

    def peer(self, task: Task, n: int, device: str) -> dict:
        trials = (1, self.perf_trials)
        said = peers.opinion(
            "kernelbench", str(self.kernelbench), task.source, reference_code(task), {}, trials, self.seconds
        )
        about = {"who": "kernelbench", "task": task.name, "round": n, "device": device, "ci": None, "clock": {}}
        about |= {"status": "correct" if said.correct else "not correct", "note": said.note[:200]}
        reference = said.ms * said.speedup if said.ms and said.speedup else None
        return about | {
            "speedup": said.speedup,
            "ms": said.ms,
            "reference_ms": reference,
            "seconds": said.seconds,
        }

    def coverage(self, device: str):
        """Known kernels: all own, one GEMM of the library's, and work that is done four times."""
        print(
            "\ncoverage of known kernels: raw, by a profile of our own in this script, credited, design.md's formula by hand"
        )
        with Gym(device, gpus=self.gpus[:1] if self.gpus else None, workers=self.workers, seed=self.seed) as gym:
            verdicts = gym.evaluate([Job(*KNOWN[name]) for name in KNOWN])
        for name, v in zip(KNOWN, verdicts):
            if not v.correct:
                print(f"  {name:20} {v.status}: {v.message[:200]}")
                continue
            by_profile = profiled(KNOWN[name][1]) if device == "cuda" else None
            text = "-" if by_profile is None else f"{by_profile:.4f} ({v.coverage_raw / by_profile - 1:+.2%})"
            print(f"  {name:20} {v.coverage_raw:.4f}  {text}  {v.coverage:.4f}  {credited(v):.4f}")


def figures(rows: list[dict]) -> list[tuple[str, str]]:
    """What A/A rows say, in words; speed-ups only of tasks above 20 us."""
    times: dict[str, list[dict]] = {}
    for row in rows:
        times.setdefault(row["task"], []).append(row)
    good = [r for r in rows if r["speedup"] and r["ms"]]
    long = [r for r in good if r["ms"] >= LAUNCH_BOUND]
    stated = [r for r in long if r["ci"]]

    def share(part: list, of: list) -> str:
        return f"{len(part) / len(of):.1%} ({len(part)} of {len(of)})" if of else "-"

    def spread_of(field: str) -> list[float]:
        """Coefficients of variation over the rounds, task by task."""
        values = [[r[field] for r in mine if r[field]] for mine in times.values()]
        return [statistics.stdev(v) / statistics.mean(v) for v in values if len(v) > 1]

    def percent(value: float | None) -> str:
        return "-" if value is None else f"{value:.2%}"

    cvs = spread_of("ms")
    return [
        ("judged correct", share([r for r in rows if r["status"] == "correct"], rows)),
        ("above 20 us", share(long, good)),
        ("speed-up within 0.99 to 1.01", share([r for r in long if 0.99 <= r["speedup"] <= 1.01], long)),
        ("largest deviation of a speed-up from 1", percent(max((abs(r["speedup"] - 1) for r in long), default=None))),
        ("1 inside the stated interval", share([r for r in stated if r["ci"][0] <= 1 <= r["ci"][1]], stated)),
        ("median width of the interval", percent(median(r["ci"][1] - r["ci"][0] for r in stated))),
        ("CV of a kernel's time over the rounds, median", percent(median(cvs))),
        ("   largest", percent(max(cvs, default=None))),
        ("CV of the reference's time over the rounds, median", percent(median(spread_of("reference_ms")))),
        ("throttled while timed", share([r for r in rows if r["clock"].get("throttled")], rows)),
        ("somebody else used the GPU", share([r for r in rows if r["clock"].get("contended")], rows)),
        ("seconds of an evaluation, median", f"{median(r['seconds'] for r in rows):.2f}"),
    ]


def credited(v: Verdict) -> float:
    """Coverage by hand: own kernels' time up to what the reference's kernels take beyond the candidate's library calls, over all."""
    own, library = (sum(k["ms"] for k in v.kernels if k["own"] == which) for which in (True, False))
    reference = sum(k["ms"] for k in v.reference_kernels)
    return min(own, max(0.0, reference - library)) / (own + library)


CHAIN = """import torch
import torch.nn as nn

rows = {rows}
SMALL = {{"rows": 16}}


class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1024, 1024)

    def forward(self, x):
        x = {first}
        {chain}


def get_inputs():
    return [torch.randn(rows, 1024)]


def get_init_inputs():
    return []
"""
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def chain_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    x = tl.maximum(x * 1.5, 0.0) + 0.5
    tl.store(o_ptr + i, x * x, mask=i < n)


def chain(x, times=1):
    o = torch.empty_like(x)
    for _ in range(times):
        chain_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o
"""


def _known(first: str, times: int) -> tuple[Task, str]:
    plain = "x = torch.relu(x * 1.5) + 0.5\n        return x * x"
    task = Task("known", CHAIN.format(rows=16384, name="Model", first=first, chain=plain))
    return task, CHAIN.format(rows=16384, name="ModelNew", first=first, chain=f"return chain(x, {times})") + KERNEL


KNOWN = {
    "all own": _known("x", 1),
    "one GEMM of cuBLAS": _known("self.linear(x)", 1),
    "work done 8 times": _known("self.linear(x)", 8),
}
PROFILE = """
import sys, torch, importlib.util
spec = importlib.util.spec_from_file_location("known", sys.argv[1])
known = importlib.util.module_from_spec(spec)
spec.loader.exec_module(known)
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
with torch.no_grad():
    model, inputs = known.ModelNew().cuda(), [[x.cuda() for x in known.get_inputs()] for _ in range(20)]
    for given in inputs[:5]:
        model(*given)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:
        for given in inputs:
            model(*given)
        torch.cuda.synchronize()
kernels = [e for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA]
total = sum(e.time_range.elapsed_us() for e in kernels)
print(sum(e.time_range.elapsed_us() for e in kernels if e.name == "chain_kernel") / total)
"""


def profiled(code: str) -> float:
    """chain_kernel's share of the GPU time by torch.profiler in a plain process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "known.py"
        path.write_text(code)
        done = subprocess.run([sys.executable, "-c", PROFILE, str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench.py: the profile failed: {done.stderr[-500:]}")
    return float(done.stdout.split()[-1])
