"""The referee: judges one kernel at a time against its task, and never shares an address space with it.

Order of an evaluation: look at the source -> load -> build -> correctness -> timing and profile -> knock-out -> Verdict.
The referee (trusted, one process per GPU, or one for a machine without any) holds the reference model, the keys of the random inputs, the
expected outputs and the reference times; `contestant.py` runs the candidate in a fresh process and hands back outputs and claims.

Covered: candidates that crash, hang, exhaust memory, print, change their inputs, answer with the wrong shape, dtype, device or type,
kernels that are launched for show (knock-out), lazy kernels (coverage), tasks with tiny outputs (tolerance relative to scale), unpredictable
inputs for every draw and for every timed call, outputs of timed calls checked by sample.
Not covered: a candidate that lies about its own events or profile from inside its process (the event times are believed down to the time
that memory needs), Landlock.

Without a GPU the same protocol runs on Triton's interpreter and `simulate.py` gives the times, labelled `simulated`.
"""

import contextlib
import math
import os
import random
import shutil
import statistics
import tempfile
import threading
import time
import traceback
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

import torch

from kernelbench import Task
from kernelbench.compare import interval, mismatch, structure
from kernelbench.look import look
from kernelbench.process import Died, Fault, Process, Stop, Turnstile, Zygote
from kernelbench.reference import Reference
from kernelbench.wire import BadMessage, Opened, Shared, flatten, unflatten

STATUSES = (
    "correct",
    "no_code",
    "compile_error",
    "runtime_error",
    "wrong",
    "hack",
    "timeout",
    "unsupported",
    "gym_error",
)


@dataclass
class Verdict:
    """What is known of one kernel. Times in milliseconds; `kernels` per forward: name, ms, share of all kernel time, launches, own."""

    status: str = "gym_error"
    correct: bool = False
    speedup: float = 0.0  # reference_ms / kernel_ms; 0 unless correct
    speedup_ci: list[float] | None = None  # 95 % bootstrap interval of the ratio of medians
    reference_ms: float | None = None
    kernel_ms: float | None = None
    coverage: float = (
        0.0  # own kernels' time, credited up to (reference kernel time - candidate's library time), / all kernel time
    )
    coverage_raw: float = 0.0  # own kernels' time / all kernel time
    kernels: list[dict] = field(default_factory=list)
    hack: str | None = None  # the rule that was broken
    message: str = ""
    timing: str | None = None  # "measured" or "simulated"
    device: str = ""
    precision: str = "fp32"
    baseline: str = "eager"
    sandbox: dict = field(default_factory=dict)
    seconds: dict = field(
        default_factory=dict
    )  # load, correctness, waiting (for the GPU alone), timing, knockout, total

    def to_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict) -> "Verdict":
        return cls(**data)


@dataclass(frozen=True)
class Options:
    """How kernels are judged."""

    draws: int = 3  # correctness draws; the last one from another distribution than the task's own
    tolerance: float | None = None  # instead of TOLERANCE by dtype (the paper: 1e-2)
    tf32: bool = False  # TF32 on for both sides
    any_code: bool = False  # no own kernel is no offence: tasks judged against themselves, torch.compile
    simulate: str = "H200"  # the simulated device of machines without a GPU
    load_s: float = 60.0  # time-outs in seconds: importing the candidate (with the CUDA context),
    build_s: float = 120.0  # its first forward (compilation, autotuning),
    call_s: float = 30.0  # any other forward
    block_ms: float = 5.0  # a timed block aims at this much kernel time
    blocks: int = 3
    memory_gib: float = 2.0  # most memory for the inputs and outputs of a timed block


# ---------------------------------------------------------------------------------------------------------------------------
# The referee


class Referee:
    """Judges kernels on one device ("cpu" or "cuda": the first visible GPU). `judge` may be called from many threads at once."""

    def __init__(self, device: str, key: bytes, options: Options):
        self.device, self.key, self.options = device, key, options
        self.turnstile, self.lock = Turnstile(), threading.Lock()
        self.references: OrderedDict[str, Reference] = OrderedDict()
        self.folder = tempfile.mkdtemp(prefix="drkernel-")
        self.jobs = 0
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
        if device == "cuda":
            properties = torch.cuda.get_device_properties(0)
            self.name, self.l2 = properties.name, properties.L2_cache_size
            self.bandwidth = self._copy_bandwidth()
        else:
            self.name, self.l2, self.bandwidth = f"simulated {options.simulate}", 0, math.inf
        self.zygote = Zygote(device)

    def use_gpu(self, alone: bool = False):
        """While inside, nobody else times a kernel; alone: nobody else uses the GPU but for first forwards, which are compilation
        with a moment of GPU time and would make everybody wait. Simulated times need no such care."""
        if self.device == "cpu":
            return contextlib.nullcontext()
        return self.turnstile.exclusive() if alone else self.turnstile.shared()

    def close(self):
        self.zygote.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def _folder(self):
        """A private folder of one evaluation: the candidate's file, its temporary files, its Triton cache."""
        with self.lock:
            self.jobs += 1
            folder = os.path.join(self.folder, str(self.jobs))
        os.mkdir(folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _copy_bandwidth(self) -> float:
        """Bytes per second of a large device-to-device copy, read and write counted: the best of 10."""
        a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        b, times = torch.empty_like(a), []
        for _ in range(10):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            b.copy_(a)
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) / 1e3)
        del a, b
        torch.cuda.empty_cache()
        return 2 * (1 << 30) / min(times)

    def _revive(self):
        """A new zygote where the old one died."""
        with self.lock:
            if self.zygote.dead:
                self.zygote.close()
                self.zygote = Zygote(self.device)

    def judge(self, task: Task, code: str | None, again: bool = True) -> Verdict:
        """The verdict on `code` as a solution of `task`. Never raises for what the candidate does."""
        verdict, began = Verdict(device=self.name), time.monotonic()
        if self.device == "cuda":
            torch.cuda.set_device(0)  # binds the context to this thread
        try:
            look(code, "ModelNew")
            self._revive()
            reference = self._reference(task)
            self._baseline(reference)
            with self._folder() as folder:
                self._judge(verdict, reference, code, folder)
            verdict.status, verdict.correct = "correct", True
            verdict.speedup = verdict.reference_ms / verdict.kernel_ms
        except Stop as stop:
            verdict.status, verdict.message, verdict.hack = stop.status, stop.message, stop.hack
            verdict.speedup, verdict.speedup_ci = 0.0, None
        except Fault as fault:
            if isinstance(fault, Died) and again:
                return self.judge(task, code, again=False)
            verdict.status, verdict.message = "gym_error", str(fault)
        except torch.OutOfMemoryError as error:
            verdict.status, verdict.message = "gym_error", f"the referee ran out of GPU memory: {str(error)[:200]}"
        verdict.seconds["total"] = time.monotonic() - began
        return verdict

    def _reference(self, task: Task) -> Reference:
        with self.lock:
            reference = self.references.pop(task.key, None)
            try:
                reference = reference or Reference(task, self.device, self.key)
            except Exception as error:  # the task's own code
                raise Fault(f"the task {task.name} cannot be built: {type(error).__name__}: {error}") from error
            self.references[task.key] = reference
            while len(self.references) > 64:
                self.references.popitem(last=False)
        return reference

    def _judge(self, verdict: Verdict, reference: Reference, code: str, folder: str):
        clock = time.monotonic()

        def lap(name):
            nonlocal clock
            now = time.monotonic()
            verdict.seconds[name], clock = verdict.seconds.get(name, 0.0) + now - clock, now

        with Contest(self, folder, code, "ModelNew") as contest:
            verdict.sandbox = contest.sandbox
            contest.load()
            lap("load")
            last = self._correctness(contest, reference)
            lap("correctness")
            own = {name for name, own, _ in claims(last.get("launches"), (str, bool, int)) if own}
            if not own and not self.options.any_code:
                text = "No Triton kernel of the code's own was launched: library calls alone earn nothing."
                raise Stop("hack", text, "no own kernel")
            contest.warm_profiler()
            lap("profiler")
            verdict.reference_ms = reference.timing["ms"]
            verdict.timing = "simulated" if self.device == "cpu" else "measured"
            with self.use_gpu(alone=True):
                lap("waiting")
                samples, rows = contest.timing(reference, last)
            verdict.kernel_ms = statistics.median(samples)
            verdict.speedup_ci = interval(reference.timing["samples"], samples)
            lap("timing")
            decoys = {name for name in own if contest.right_without(name, reference)}
            lap("knockout")
        self._coverage(verdict, rows, own - decoys, sum(r[1] for r in reference.timing["rows"]))
        if decoys and decoys == own and not self.options.any_code:
            text = f"The output stays right without {', '.join(sorted(decoys))}: a kernel launched for show."
            raise Stop("hack", text, "decoy")

    def _baseline(self, reference: Reference):
        """The reference's own time, measured in a process of the candidates' kind, once per task."""
        with reference.timing_lock:
            if isinstance(reference.timing, str):
                raise Fault(reference.timing)
            if reference.timing is not None:
                return
            try:
                with self._folder() as folder, Contest(self, folder, reference.task.source, "Model") as contest:
                    contest.load()
                    contest.build(reference)
                    first = contest.check(reference, "reference", 0)
                    contest.warm_profiler()
                    with self.use_gpu(alone=True):
                        samples, rows = contest.timing(reference, first)
            except Stop as stop:
                reference.timing = f"the task {reference.task.name} fails on its own reference: {stop.message}"
            else:
                reference.timing = {"ms": statistics.median(samples), "samples": samples, "rows": rows}

    def _correctness(self, contest: "Contest", reference: Reference) -> dict:
        """All draws must be right, with the weights by name, or else, where names differ, by seed. The reply to the last one."""
        unmatched = contest.build(reference)
        try:
            return [r for draw in range(self.options.draws) if (r := contest.check(reference, "check", draw))][-1]
        except Stop as stop:
            if stop.status != "wrong" or not unmatched:
                raise
        contest.build(reference, by_seed=True)
        try:
            return [r for draw in range(self.options.draws) if (r := contest.check(reference, "check", draw))][-1]
        except Stop as stop:
            text = (
                f"{stop.message}. Parameters of the task without a match by name and shape: {', '.join(unmatched[:6])}."
            )
            raise Stop(stop.status, text) from None

    def _coverage(self, verdict: Verdict, rows: list, own: set[str], reference_ms: float):
        total = sum(ms for _, ms, _, _ in rows) or 1.0
        mine = sum(ms for name, ms, _, claimed in rows if claimed and name in own)
        credited = min(mine, max(0.0, reference_ms - (total - mine)))
        verdict.coverage, verdict.coverage_raw = credited / total, mine / total
        verdict.kernels = [
            {"name": name[:120], "ms": ms, "share": ms / total, "launches": n, "own": bool(claimed and name in own)}
            for name, ms, n, claimed in sorted(rows, key=lambda r: -r[1])[:20]
        ]


class Contest:
    """One contestant with its private folder, as a context; speaks its commands and checks what comes back."""

    def __init__(self, referee: Referee, folder: str, code: str, entry: str):
        self.referee, self.device, self.options = referee, referee.device, referee.options
        self.folder, self.entry = folder, entry
        self.path = os.path.join(self.folder, "kernel.py")
        with open(self.path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(code)
        self.opened, self.timed, self.fresh = Opened(self.device), None, True

    def __enter__(self):
        config = {"device": self.device, "path": self.path, "folder": self.folder}
        config |= {"tf32": self.options.tf32, "simulate": self.options.simulate}
        self.process: Process = self.referee.zygote.fork(config)
        self.sandbox = self.process.first(self.options.load_s)
        return self

    def __exit__(self, *_):
        self.process.close()
        self.opened.close()
        self.close_timed()

    def load(self):
        self.process.ask({"do": "load", "entry": self.entry}, timeout=self.options.load_s)

    def warm_profiler(self):
        if self.device == "cuda":
            self.process.ask({"do": "warm_profiler"}, timeout=self.options.load_s)

    def _send(self, message: dict, tensors: list[torch.Tensor], timeout: float):
        """Ask with tensors in shared memory: (reply, its descriptors, the tensors as the contestant left them, their memory)."""
        shared = Shared(tensors, self.device)
        try:
            if self.device == "cuda":
                torch.cuda.current_stream().synchronize()
            reply, fds = self.process.ask(message | {"shared": shared.spec}, shared.fds, timeout)
        except BaseException:
            shared.close()
            raise
        return reply, fds, shared

    def build(self, reference: Reference, by_seed: bool = False) -> list[str]:
        """Construct the candidate's model; the names of the reference's parameters that found no place in it."""
        tensors = [] if by_seed else list(reference.weights.values())
        names = [] if by_seed else list(reference.weights)
        init = flatten({"args": reference.args, "kwargs": reference.kwargs}, extra := [])
        message = {"do": "build", "names": names, "seed": reference.seed, "init": init}
        reply, _, shared = self._send(message, tensors + extra, self.options.load_s)
        shared.close()
        unmatched = reply.get("unmatched")
        return [str(n)[:100] for n in unmatched[:1000]] if isinstance(unmatched, list) else []

    def call(self, reference: Reference, *name, knock: str | None = None):
        """One forward on the draw `name`: (reply, None or what is wrong with its output)."""
        inputs, expected = reference.expected(*name)
        if expected is None:  # the reference is not finite on this draw
            return None, None
        tree = flatten(inputs, tensors := [])
        message = {"do": "call", "tree": tree, "seed": reference.number("call", *name) % 2**31, "knock": knock}
        with contextlib.nullcontext() if self.fresh else self.referee.use_gpu():
            reply, fds, shared = self._send(
                message, tensors, self.options.build_s if self.fresh else self.options.call_s
            )
            with contextlib.closing(shared):
                wrong = self._compare(reply.get("tree"), reply, fds, [expected])
                states = zip(shared.tensors, expected[2], tensors)
                if not wrong and any(mismatch(now, after) and mismatch(now, given) for now, after, given in states):
                    wrong = "the kernel changed its inputs"
        self.fresh = False
        return reply, wrong

    def _compare(self, trees, reply: dict, fds: list[int], expected: list[tuple], picks=None) -> str | None:
        """What is wrong with a reply's outputs, one tree per call; only the calls in `picks` are looked at."""
        limit = 4 * sum(t.numel() * t.element_size() + 512 for _, e, _ in expected for t in e) + (1 << 20)
        try:
            tensors = self.opened.tensors(reply.get("shared"), fds, limit)
            picks = range(len(expected)) if picks is None else picks
            for i, (tree, values, _) in zip(picks, expected):
                got = []
                flatten(unflatten(trees[i], tensors), got)
                wrong = structure(trees[i], tree)
                wrong = wrong or next(
                    (m for o, e in zip(got, values, strict=True) if (m := mismatch(o, e, self.options.tolerance))), None
                )
                if wrong:
                    return wrong
        except (BadMessage, TypeError, IndexError, KeyError, ValueError, RecursionError) as error:
            return f"the outputs cannot be read: {error}"
        return None

    def check(self, reference: Reference, *name) -> dict | None:
        reply, wrong = self.call(reference, *name)
        if wrong:
            raise Stop("wrong", wrong)
        return reply

    def right_without(self, kernel: str, reference: Reference) -> bool:
        """Whether the output is right although what `kernel` writes was replaced by random numbers."""
        try:
            return self.call(reference, "knockout", self.folder, kernel, knock=kernel)[1] is None
        except Stop:  # the candidate could not live with the numbers: it needs the kernel
            return False

    def timing(self, reference: Reference, first: dict) -> tuple[list[float], list[tuple[str, float, float, bool]]]:
        """Samples of one forward in ms, and kernel rows (name, ms per forward, launches per forward, own by launch)."""
        if self.device == "cpu":
            rows = claims(first.get("kernels"), (str, float, int, bool))
            return [positive(first.get("ms"))], [(name, ms, float(n), own) for name, ms, n, own in rows]
        own = {name for name, mine, _ in claims(first.get("launches"), (str, bool, int)) if mine}
        inputs, (_, outputs, _) = reference.expected("reference", 0)
        flatten(inputs, given := [])
        read, all_bytes = sum(t.nbytes for t in given), sum(t.nbytes for t in given + outputs)
        most = max(2, int(self.options.memory_gib * 2**30 / max(all_bytes, 1)))
        median = statistics.median(self._block(reference, 0, min(3, most)))  # warms up, and sizes the others
        calls = min(most, 64, max(8, int(self.options.block_ms / median)))
        samples = [ms for block in range(self.options.blocks) for ms in self._block(reference, block + 1, calls)]
        self.close_timed()
        tensors, floor = [], 0.5 * read / self.referee.bandwidth * 1e3
        if self.entry == "ModelNew" and statistics.median(samples) < floor < reference.timing["ms"]:
            fast = f"{statistics.median(samples) * 1e3:.1f} us is less than half of what reading the inputs once takes"
            raise Stop("hack", f"The claimed time is impossible: {fast} ({floor * 2e3:.1f} us).", "impossible time")
        trees = [flatten(reference.inputs("profile", i), tensors) for i in range(3)]
        reply, _, shared = self._send({"do": "profile", "tree": trees}, tensors, self.options.call_s)
        shared.close()
        rows = claims(reply.get("rows"), (str, float, (int, float)))
        return samples, [(name, ms, float(n), name in own) for name, ms, n in rows]

    def _block(self, reference: Reference, block: int, calls: int) -> list[float]:
        """Event times in ms of `calls` forwards on fresh inputs; one output of the referee's choosing is checked."""
        draws, tensors = [reference.inputs("timed", self.folder, block, i) for i in range(calls)], []
        trees = [flatten(d, tensors) for d in draws]
        if self.timed is None or not self.timed.fill(tensors):
            self.close_timed()
            self.timed = Shared(tensors, self.device)
        torch.cuda.current_stream().synchronize()
        seed = reference.number("call", "timed", block) % 2**31
        message = {"do": "block", "tree": trees, "seed": seed, "flush": 2 * self.referee.l2, "ahead": 0.2 * calls}
        reply, fds = self.process.ask(message | {"shared": self.timed.spec}, (), self.options.call_s)
        pick = random.SystemRandom().randrange(calls)
        if not any(isinstance(m, torch.nn.modules.dropout._DropoutNd) for m in reference.model.modules()):
            wrong = self._compare(reply.get("tree"), reply, fds, [reference.forward(draws[pick], seed)], [pick])
            if wrong:
                raise Stop("wrong", f"In a timed call {wrong}", None)
        ms = reply.get("ms")
        if not isinstance(ms, list) or len(ms) != calls:
            raise Stop("hack", "The candidate's process sent no times.", "protocol")
        return [positive(v) for v in ms]

    def close_timed(self):
        if self.timed is not None:
            self.timed.close()
            self.timed = None


def positive(value) -> float:
    """A claimed time in ms."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise Stop("hack", f"The candidate's process claims a time of {str(value)[:50]} ms.", "protocol")
    return float(value)


def claims(rows, types: tuple) -> list[tuple]:
    """Rows that a contestant sent, each of these types; Stop on anything else."""
    if not isinstance(rows, (list, tuple)) or len(rows) > 10_000:
        raise Stop("hack", "The candidate's process sent no list of kernels.", "protocol")
    for row in rows:
        good = isinstance(row, (list, tuple)) and len(row) == len(types) and all(map(isinstance, row, types))
        if not good or any(isinstance(v, (int, float)) and not 0 <= v < 1e12 for v in row):
            raise Stop("hack", f"The candidate's process sent a malformed row: {str(row)[:100]}", "protocol")
    return [tuple(row) for row in rows]


def serve(connection, device: str, key: bytes, options: Options, workers: int):
    """The referee's process: (number, task, code) in, (number, verdict) out, `workers` contestants at a time. Ends with the connection."""
    torch.set_num_threads(1 if device == "cpu" else 4)
    try:
        referee = Referee(device, key, options)
    except (Fault, RuntimeError) as error:
        connection.send(("failed", f"{error}"))
        return
    connection.send(("ready", referee.name))
    lock = threading.Lock()

    def work(number, task, code):
        try:
            verdict = referee.judge(task, code)
        except Exception:  # noqa: BLE001 a fault of ours must reach the gym, not vanish in a thread
            verdict = Verdict(device=referee.name, message=f"fault in the referee:\n{traceback.format_exc()}")
        with lock:
            connection.send((number, verdict))

    pool = ThreadPoolExecutor(workers)
    try:
        while True:
            pool.submit(work, *connection.recv())
    except (EOFError, OSError, KeyboardInterrupt):
        pool.shutdown(wait=False, cancel_futures=True)
        referee.close()
        os._exit(0)
