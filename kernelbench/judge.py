"""The referee: judges one kernel at a time against its task, and never shares an address space with it.

Order of an evaluation: look at the source -> load -> build -> correctness -> timing and profile -> knock-out -> the reference's time
beside it (`baseline.py`) -> Verdict.
The referee (trusted, one process per GPU, or one for a machine without any) holds the reference model, the keys of the random inputs, the
expected outputs and the reference times; `contestant.py` runs the candidate in a fresh process and hands back outputs and claims.

Covered: candidates that crash, hang, exhaust memory, print, change their inputs, answer with the wrong shape, dtype, device or type,
kernels that are launched for show (knock-out) or only copy, lazy kernels (coverage), tasks with tiny outputs (tolerance relative to scale)
and tasks that any output would pass, unpredictable inputs for every draw and for every timed call, the referee's own clock, outputs of
timed calls checked by sample.
Not covered: a candidate that takes over its own process and forges its launches or profile (coverage is a claim), dropout by own numbers.

Without a GPU the same protocol runs on Triton's interpreter and `simulate.py` gives the times, labelled `simulated`.
"""

import contextlib
import math
import os
import random
import secrets
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

import torch

from kernelbench import Task, clock, times
from kernelbench.baseline import Baseline
from kernelbench.compare import warm
from kernelbench.contest import Contest
from kernelbench.launches import LIBRARY
from kernelbench.look import look
from kernelbench.process import Died, Fault, Process, Stop, Turnstile, Zygote
from kernelbench.reference import Kept, Reference
from kernelbench.roofline import figures, peaks
from kernelbench.room import Room, starved
from kernelbench.simulate import DEVICES
from kernelbench.timer import claims, middle
from kernelbench.wire import ARENA, Shared

STATUSES = tuple("correct no_code compile_error runtime_error wrong hack timeout unsupported gym_error".split())


# bytes of GPU memory: of a reference's process while it waits, its weights (baseline.py) included; and, by a guess, of libraries' workspaces
# beyond what operators give back, until the reference has run
RESIDENT, UNMEASURED = 1 << 30, 1 << 30


@dataclass
class Verdict:
    """What is known of one kernel. Times in milliseconds; `kernels` per forward: name, ms, share of all kernel time, launches, own."""

    status: str = "gym_error"
    correct: bool = False
    speedup: float = 0.0  # reference_ms / kernel_ms; 0 unless correct
    speedup_ci: list[float] | None = None  # 95 % interval of the ratio of medians, see clock.py
    reference_ms: float | None = None
    kernel_ms: float | None = None
    # own kernels' time, credited up to (reference kernel time - candidate's library time), / all kernel time
    coverage: float = 0.0
    coverage_raw: float = 0.0  # own kernels' time / all kernel time
    kernels: list[dict] = field(default_factory=list)
    reference_kernels: list[dict] = field(default_factory=list)  # the same of the reference
    launch: float | None = None  # share of kernel_ms in which no kernel runs: launches and gaps
    roofline: dict = field(default_factory=dict)  # see roofline.py
    hack: str | None = None  # the rule that was broken
    message: str = ""
    findings: list[dict] = field(default_factory=list)  # what the static look reports without refusing it
    timing: str | None = None  # "measured" or "simulated"
    device: str = ""
    precision: str = "fp32"
    tf32: bool = False  # on both sides
    baseline: str = "eager"  # what the reference's time is of: eager, compile (torch.compile), max-autotune
    reference_times: dict = field(default_factory=dict)  # of this evaluation: see times.figures
    # the GPU while both sides were timed: see clock.summary; drift: against the time on disk
    clock: dict = field(default_factory=dict)
    sandbox: dict = field(default_factory=dict)
    memory: dict = field(default_factory=dict)  # bytes of the task's weights, inputs and outputs
    # load, correctness (compilation, and waiting for the reference's time), timing (waiting for the GPU, and the profile), knockout, reference, total
    seconds: dict = field(default_factory=dict)

    def to_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict) -> "Verdict":
        return cls(**data)


@dataclass(frozen=True)
class Options:
    """How kernels are judged."""

    draws: int = 4  # correctness draws; from the third on from other distributions than the task's own
    tolerance: float | None = None  # instead of TOLERANCE by dtype (the paper: 1e-2)
    precision: str = "fp32"  # as the task is written; bf16, fp16: weights and float inputs cast, on both sides
    tf32: bool = False  # TF32 on for both sides
    baseline: str = "eager"  # what the reference is timed as: eager, compile (torch.compile), max-autotune
    times: str | None = None  # folder of reference times that are kept, see times.py
    residents: int = 16  # references that stay in a process, to be timed beside candidates, while half the GPU is free
    any_code: bool = False  # no own kernel is no offence: tasks judged against themselves, torch.compile
    simulate: str = "H200"  # the simulated device of machines without a GPU
    load_s: float = 60.0  # time-outs in seconds: importing the candidate (with the CUDA context),
    build_s: float = 120.0  # its first forward (compilation, autotuning),
    call_s: float = 30.0  # any other forward
    blocks: int = 3  # timed blocks,
    calls: int = 16  # of up to so many forwards
    fresh_s: float = 10.0  # a reference timed no longer ago is not timed again beside a candidate
    most_s: float = 1.0  # about the longest that a block takes: slow kernels have fewer forwards
    memory: float = 0.95  # share of the device's free memory that all evaluations together may take
    cache: float = 0.1  # share of it for expected outputs that are kept for the next candidates
    memory_gib: float = 8.0  # most of timed inputs and outputs together (at most 1/16 of all, at least one forward's)


# ---------------------------------------------------------------------------------------------------------------------------
# The referee


def base(kernel: str) -> str:
    """The name that a profile gives to a kernel: several functions may bear one."""
    return kernel.split(" (")[0]


def table(rows: list, own: set[str] = frozenset()) -> list[dict]:
    """The 20 largest rows of a profile, as a verdict holds them."""
    total = sum(ms for _, ms, _, _ in rows) or 1.0
    return [
        {"name": name[:120], "ms": ms, "share": ms / total, "launches": n, "own": bool(claimed and name in own)}
        for name, ms, n, claimed in sorted(rows, key=lambda r: -r[1])[:20]
    ]


def copied(reply: dict, what: str = "copies") -> set[str]:
    """The kernels that only copied in a forward, as a contestant says; "took": what a library had computed."""
    return {str(kernel) for kernel in reply[what]} if isinstance(reply.get(what), list) else set()


class Referee:
    """Judges kernels on one device ("cpu" or "cuda": the first visible GPU). `judge` may be called from many threads at once."""

    def __init__(self, device: str, key: bytes, options: Options, zygote: Zygote | None = None):
        self.device, self.key, self.options = device, key, options
        self.turnstile, self.cycles = Turnstile(), clock.Cycles(device)
        self.lock, self.looking = threading.Lock(), threading.Lock()
        self.simulated, self.watch = device == "cpu", None
        self.overhead = math.inf  # ms that a block of timed forwards takes beyond its events, at least: see timer.py
        self.references: OrderedDict[str, Reference] = OrderedDict()
        self.folder, self.jobs = tempfile.mkdtemp(prefix="drkernel-"), 0
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
        if device == "cuda":
            properties = torch.cuda.get_device_properties(0)
            self.name = properties.name
            self.peaks, self.watch = peaks(device, options.simulate, options.precision), clock.Watch()
            for _ in range(20):  # until the clock has risen
                self.cycles.steady()
            self.scratch = torch.empty(2 * properties.L2_cache_size, dtype=torch.uint8, device="cuda")
            # meanwhile, as the zygote does its own: torch imports 900 modules for the first operator on its meta device (reference.py)
            threading.Thread(target=lambda: (torch.ones(1, device="meta") * 2, warm(device)), daemon=True).start()
        else:
            self.name, self.peaks = f"simulated {options.simulate}", peaks(device, options.simulate, options.precision)
        self.zygote, self.arenas, self.baseline = (zygote or Zygote(device)).ready(), [], Baseline(self)
        pages = math.prod(map(os.sysconf, ("SC_PHYS_PAGES", "SC_PAGE_SIZE")))
        free = torch.cuda.mem_get_info()[0] if device == "cuda" else pages
        self.memory, cache = int(options.memory * free), int(options.cache * free)
        # beside the evaluations lie kept outputs, what torch may keep (tidy), other tasks' weights, residents, arenas; who is alone clears most of that
        aside = cache + self.memory // 8 + (RESIDENT * options.residents + ARENA * 16) * (device == "cuda")
        self.room = Room(self.memory - aside)
        self.timers = ThreadPoolExecutor(
            8, initializer=torch.cuda.set_device if device == "cuda" else None, initargs=(0,) * (device == "cuda")
        )
        self.block, self.kept = min(options.memory_gib * 2**30, self.memory / 16), Kept(cache)

    def take_arena(self) -> Shared:
        """Memory that one contestant at a time shares with the referee."""
        try:
            return self.arenas.pop()
        except IndexError:
            return Shared([], self.device)

    def give_arena(self, arena: Shared, dead: bool):
        """Back, if it is of a handy size and its contestant is dead; without what that left in it."""
        if dead and len(arena.memory) <= ARENA and len(arena.pointers) < 2:
            arena.memory.zero_()
            self.arenas.append(arena)
        else:
            arena.close()

    def flush(self):
        """Queued on the GPU: what was written to it lies in its memory and no longer in its L2 cache."""
        if self.device == "cuda":
            self.scratch.zero_()

    def filling(self, nbytes: int) -> float:
        """ms that it takes to fill so many bytes into the shared memory."""
        return 2e3 * nbytes / self.peaks[0] if self.device == "cuda" else 0.0

    def state(self) -> dict:
        """The GPU just now, by NVML; stretch: how much longer than ever before a fixed number of cycles takes."""
        return self.watch() | {"stretch": self.cycles.stretch()} if self.watch else clock.UNKNOWN | {"stretch": 1.0}

    @contextlib.contextmanager
    def use_gpu(self, alone: Process | None = None):
        """While inside, nobody else times a kernel; alone: nobody but this contestant and the referee uses the GPU at all. The others stand
        still, whatever they do: a first forward compiles and tunes kernels for seconds, and nobody knows when. Simulated times need no such care."""
        if self.device == "cpu":
            yield
        elif alone:
            with self.turnstile.exclusive(), alone.zygote.alone(alone.job):
                yield
        else:
            with self.turnstile.shared():
                yield

    def close(self):
        self.timers.shutdown(wait=False, cancel_futures=True)
        self.zygote.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def private_folder(self):
        """A private folder of one evaluation: the candidate's file, its temporary files, its Triton cache."""
        with self.lock:
            self.jobs += 1
            folder = os.path.join(self.folder, f"{self.jobs}-{secrets.token_hex(8)}")  # nobody can guess the next one
        os.mkdir(folder, 0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _revive(self):
        """A new zygote where the old one died."""
        with self.lock:
            if self.zygote.dead:
                self.zygote.close()
                self.zygote = Zygote(self.device).ready()

    def judge(self, task: Task, code: str | None, again: bool = True) -> Verdict:
        """The verdict on `code` as a solution of `task`. Never raises for what the candidate does."""
        options, began = self.options, time.monotonic()
        verdict = Verdict(device=self.name, precision=options.precision, tf32=options.tf32, baseline=options.baseline)
        if self.device == "cuda":
            torch.cuda.set_device(0)  # binds the context to this thread
        try:
            with self.looking:  # ast.parse in several threads may raise SystemError (Python 3.11)
                verdict.findings = [asdict(finding) for finding in look(code, "ModelNew")]
            self._revive()
            with self.use_gpu():
                reference = self._reference(task)
            if not self._judged(verdict, reference, code):  # memory was short beside others
                self._judged(verdict, reference, code, alone=True)
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
            torch.cuda.empty_cache()
        verdict.seconds["total"] = time.monotonic() - began
        return verdict

    def _judged(self, verdict: Verdict, reference: Reference, code: str, alone: bool = False) -> bool:
        """False: it ended for want of memory while others took some too, which says nothing of anybody."""
        takes = max(self._takes(reference), self.room.total if alone else 0)
        with self.room.take(takes) as part, self.private_folder() as folder:
            if alone or reference.large():
                self.clear()
            try:
                self._judge(verdict, reference, code, folder)
            except (Stop, Fault, RuntimeError) as error:
                if not (part.shared and starved(error)):
                    raise
                return False
            finally:
                verdict.memory = dict(zip(("weights", "inputs", "outputs"), reference.sizes))
                self.tidy()
        return True

    def _reference(self, task: Task) -> Reference:
        with self.lock:
            reference = self.references.pop(task.key, None)
            try:
                reference = reference or Reference(
                    task, self.device, self.key, self.kept, self.memory, self.options.precision
                )
            except Fault:
                raise
            except ModuleNotFoundError as error:
                text = f"the task {task.name} needs the Python package {error.name}: pip install {error.name}"
                raise Fault(text) from error
            except Exception as error:  # the task's own code
                raise Fault(f"the task {task.name} cannot be built: {type(error).__name__}: {error}") from error
            self.references[task.key] = reference
            while len(self.references) > 64 or 16 * self._weights() > self.memory and len(self.references) > 1:
                self.references.popitem(last=False)
            return reference

    def _takes(self, reference: Reference) -> int:
        """Bytes that an evaluation takes on both sides together, timed forwards, the tests of launches (see launches.py) and, until it is timed,
        the reference's own process included."""
        _, inputs, outputs = reference.sizes
        made, takes = outputs + reference.scratch, reference.need()
        if self.device == "cuda":
            takes += int(2 * min(self.block, self.options.calls * (inputs + outputs)))
            takes += 0 if isinstance(reference.timing, dict) else takes // 2 + UNMEASURED
        return takes + (0 if self.options.any_code else inputs + 2 * made + min(LIBRARY, made))

    def _weights(self) -> int:
        return sum(reference.sizes[0] for reference in self.references.values())

    def clear(self):
        """Nothing lies in the device's memory but what is at work: for a large task."""
        self.baseline.clear()
        self.kept.clear()
        with self.use_gpu(), contextlib.suppress(IndexError):  # others take and give arenas meanwhile
            while True:
                self.arenas.pop().close()

    def tidy(self):
        """What a large task leaves in torch's hands is wanted by the contestants of the next one."""
        if self.device == "cuda" and 16 * (torch.cuda.memory_reserved() - torch.cuda.memory_allocated()) > self.memory:
            with self.use_gpu():
                torch.cuda.empty_cache()

    def _judge(self, verdict: Verdict, reference: Reference, code: str, folder: str):
        before = time.monotonic()

        def lap(name):
            nonlocal before
            now = time.monotonic()
            verdict.seconds[name], before = verdict.seconds.get(name, 0.0) + now - before, now

        with Contest(self, folder, code, "ModelNew") as contest:
            verdict.sandbox = contest.sandbox
            contest.load()
            lap("load")
            truth, first, last, copies = self._correctness(contest, reference)
            lap("correctness")
            launched = claims(last.get("launches"), (str, bool, int))
            once = claims(first.get("launches"), (str, bool, int))
            contest.graphs = any(mine for _, mine, _ in once) and not any(mine for _, mine, _ in launched)
            launched = once if contest.graphs else launched
            own = {kernel for kernel, mine, _ in launched if mine}
            if not own and not self.options.any_code:
                text = "No Triton kernel of the code's own was launched: library calls alone earn nothing."
                raise Stop("hack", text, "no own kernel")
            verdict.reference_ms = reference.timing["ms"]
            verdict.timing = "simulated" if self.simulated else "measured"
            if not self.simulated:
                samples = self._clocked(contest, reference, truth, last)
                profiles = [contest.profile(last)]
                lap("timing")
            needed, unknown, later = contest.needs(truth, [kernel for kernel, mine, _ in launched if mine])
            if self.simulated:  # of several forwards that only the candidate could tell apart
                samples = max((self._clocked(contest, reference, truth, reply) for reply in [last, *later]), key=middle)
                profiles = [contest.profile(reply) for reply in [last, *later]]
            verdict.kernel_ms = middle(samples)
            lap("knockout")
        worked = needed - copies
        for reply in later:  # nor what is no work in a forward like the last one
            worked -= copied(reply) - copied(last)
            if not contest.graphs:
                worked &= {kernel for kernel, mine, _ in claims(reply.get("launches"), (str, bool, int)) if mine}
        others = {base(kernel) for kernel, mine, _ in launched if not mine or kernel not in worked}  # names say who ran
        took = set.intersection(
            *(copied(reply, "took") for reply in [last, *later])
        )  # on inputs like those of the timed forwards
        names = {base(k) for k in worked - took} - others
        rows = min(profiles, key=lambda rows: self._coverage(rows, names, reference.timing["rows"], verdict.kernel_ms))
        verdict.coverage, verdict.coverage_raw = self._coverage(
            rows, names, reference.timing["rows"], verdict.kernel_ms
        )
        verdict.kernels, verdict.reference_kernels = table(rows, names), table(reference.timing["rows"])
        if own and not needed and not unknown and not self.options.any_code:
            text = f"The output stays right without {', '.join(sorted(own))}: a kernel launched for show."
            raise Stop("hack", text, "decoy")
        if own and not worked and not unknown and not self.options.any_code:
            text = f"All that {', '.join(sorted(needed))} writes stands elsewhere already: a copy is no work."
            raise Stop("hack", text, "copy")
        if reference.passes:
            text = f"This task cannot tell right from wrong: {reference.passes} would pass for its answer."
            if not self.options.any_code:
                raise Stop("unsupported", text)
            verdict.message = text
        theirs, states = self.baseline.beside(reference)
        verdict.clock = clock.summary(contest.timer.seen + states, self.watch)
        self._times(verdict, reference, theirs, samples, rows)
        lap("reference")

    def _clocked(self, contest: Contest, reference: Reference, truth: Reference, reply: dict) -> list[list[float]]:
        """Samples of one forward in ms, by block; `reply`: to a call."""
        try:
            return contest.timer.times(truth, reply)
        except Stop as stop:
            if stop.hack != "clock":
                raise
        self.baseline.settle(reference, anew=True)  # the machine may be busier than when that was timed
        return contest.timer.times(truth, reply)

    def _times(self, verdict: Verdict, reference: Reference, theirs: list, mine: list, rows: list):
        """What follows from the samples of both sides, and the candidate's profile."""
        verdict.reference_ms, verdict.reference_times = middle(theirs), times.figures(theirs)
        verdict.speedup_ci = clock.interval(theirs, mine, 0.0 if self.simulated else clock.BETWEEN)
        gpu = DEVICES[self.options.simulate]
        busy = sum(ms - (1e3 * gpu.launch_s * n if self.simulated else 0.0) for _, ms, n, _ in rows)
        verdict.launch = min(1.0, max(0.0, 1 - busy / verdict.kernel_ms))
        scale = gpu.scale if self.device == "cpu" else 1
        verdict.roofline = figures(*reference.work, self.peaks, scale, verdict.kernel_ms, verdict.reference_ms)
        if self.options.times:
            facts = times.about(reference.task, self.name, self.options)
            known = times.load(self.options.times, facts)
            drift = verdict.reference_ms / known["median"] if known else None
            if drift:
                verdict.clock["drift"] = round(drift, 4)
            if (not drift or abs(drift - 1) > 0.03) and verdict.clock.get("contended", False) is False:
                times.save(self.options.times, facts, reference.task, verdict.reference_times)

    def _correctness(self, contest: "Contest", reference: Reference) -> tuple[Reference, dict, dict, set[str]]:
        """All draws must be right, with the weights by name, or else, where names differ, by order or by seed. The reference that it was held to,
        the replies to the first and the last one, and the kernels that only copied in all draws but the first, which may tune kernels."""

        # the reference is timed, if that is still to be done, while the candidate compiles; a large one for itself
        settled = self.timers.submit(self.baseline.settle, reference)
        if reference.large():
            contest.warm()
            settled.result()

        def draws(truth, *again):
            order = [0, *range(2, self.options.draws), 1][
                : self.options.draws
            ]  # the last, which is timed, is the task's own
            names = [("check", i, *again) for i in order]
            more = random.SystemRandom().randrange(2)  # so that nobody can count when the tests are over
            names[-1:-1] = [("check", 1, *again, "more", i) for i in range(more)]
            replies, mode = [], "count"
            for n in names:
                reply = contest.check(truth, *n, mode=mode)
                replies += [reply] if reply else []
                if mode == "count":
                    settled.result()
                    contest.warm()
                    mode = "record"  # on moved inputs, if there are such: a large mean is the same for all others
                elif reply:
                    mode = "copies"
            copies = [copied(r) for r in replies[1:]]
            return truth, replies[0], replies[-1], set.intersection(*copies) if copies else set()

        truth, (unmatched, others) = reference, contest.build(reference)
        for how in ["name", *others]:
            if how == "seed":
                settled.result()
                with self.use_gpu():
                    truth = reference.by_seed()
            if how != "name":
                contest.build(truth, how)
            try:
                return draws(truth, *[how] * (how != "name"))  # inputs that this process has not seen
            except Stop as stop:
                if stop.status != "wrong":
                    raise
                text = stop.message
        if unmatched:
            text += f". Parameters of the task without a match by name and shape: {', '.join(unmatched[:6])}."
        raise Stop("wrong", text)

    def _coverage(self, rows: list, own: set[str], reference_rows: list, kernel_ms: float) -> tuple[float, float]:
        """(coverage, coverage_raw) of a profile in which the kernels `own` count. What the reference takes, and (some overlap allowed for) what the
        clock says of the whole forward, less the library's time, is all that they are credited."""
        total = sum(ms for _, ms, _, _ in rows) or 1.0
        mine = sum(ms for name, ms, _, claimed in rows if claimed and name in own)
        most = min(sum(ms for _, ms, _, _ in reference_rows), 1.25 * kernel_ms) - (total - mine)
        return min(mine, max(0.0, most)) / total, mine / total
