"""The referee's end of one contestant: its private folder, its commands, and the checks of everything that comes back."""

import contextlib
import os
import random
import statistics
import time
from dataclasses import dataclass

import torch

from kernelbench.compare import mismatch, structure
from kernelbench.process import Fault, Process, Stop
from kernelbench.reference import HALF, Reference
from kernelbench.wire import BadMessage, Opened, flatten, leaves, references, unflatten


class Contest:
    """One contestant, as a context. referee: a judge.Referee; folder: private to the evaluation; entry: the class to construct."""

    def __init__(self, referee, folder: str, code: str, entry: str):
        self.referee, self.device, self.options = referee, referee.device, referee.options
        self.folder, self.entry = folder, entry
        self.path = os.path.join(self.folder, "kernel.py")
        with open(self.path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(code)
        self.opened, self.fresh, self.lost, self.clock_runs, self.drawn = Opened(self.device), True, False, 0, 0

    def __enter__(self):
        config = {"device": self.device, "path": self.path, "folder": self.folder}
        config |= {"tf32": self.options.tf32, "simulate": self.options.simulate, "any_code": self.options.any_code}
        self.process: Process = self.referee.zygote.fork(config)
        self.sandbox = self.process.first(self.options.load_s)
        self.arena = self.referee.take_arena()
        return self

    def __exit__(self, *_):
        dead, self.lost = self.process.close(), True
        self.opened.close()
        self.referee.give_arena(self.arena, dead)

    def load(self):
        self.process.ask({"do": "load", "entry": self.entry}, timeout=self.options.load_s)

    def warm_profiler(self):
        if self.device == "cuda":
            self.process.ask({"do": "warm_profiler"}, timeout=self.options.load_s)

    def _send(self, message: dict, tensors: list[torch.Tensor], timeout: float) -> tuple[dict, list[int]]:
        """Ask with tensors in the shared memory: the reply and its descriptors."""
        self.arena.fill(tensors)
        if self.device == "cuda":
            torch.cuda.current_stream().synchronize()
        return self.process.ask(message | {"shared": self.arena.spec}, self.arena.fds, timeout)

    def build(self, reference: Reference, by_seed: bool = False) -> list[str]:
        """Construct the candidate's model; the names of the reference's parameters that found no place in it."""
        tensors = [] if by_seed else list(reference.weights.values())
        names = [] if by_seed else list(reference.weights)
        try:
            init = flatten({"args": reference.args, "kwargs": reference.kwargs}, extra := [], exact=True)
        except TypeError as error:
            raise Fault(f"the task {reference.task.name} has an argument that cannot be sent: {error}") from None
        message = {"do": "build", "names": names, "seed": reference.seed, "init": init}
        reply, _ = self._send(message, tensors + extra, self.options.load_s)
        unmatched = reply.get("unmatched")
        return [str(n)[:100] for n in unmatched[:1000]] if isinstance(unmatched, list) else []

    def call(self, reference: Reference, *name, mode: str = "count", kernel: str | None = None):
        """One forward on the draw `name`: (reply, None or what is wrong with its output). mode, kernel: see launches.py."""
        with self.referee.use_gpu():
            inputs, expected = reference.expected(*name)
        if expected is None:  # the reference is not finite on this draw
            return None, None
        tree = flatten(inputs, tensors := [], exact=True)
        message = {"do": "call", "tree": tree, "seed": reference.number("call", *name) % 2**31}
        message |= {"mode": mode, "kernel": kernel}
        with contextlib.nullcontext() if self.fresh else self.referee.use_gpu():
            reply, fds = self._send(message, tensors, self.options.build_s if self.fresh else self.options.call_s)
            try:
                (got,) = self._read(reply, fds, [0], expected[1])
                wrong = self._differs(got, expected, reference, inputs, message["seed"])
            except BadMessage as error:
                wrong = str(error)
            states = zip(self.arena.tensors, expected[2], tensors)
            if not wrong and any(mismatch(now, after) and mismatch(now, given) for now, after, given in states):
                wrong = "the kernel changed its inputs"
        self.fresh = False
        return reply, wrong

    def _read(self, reply: dict, fds: list[int], picks: list[int], like: list[torch.Tensor]) -> list[tuple]:
        """(tree, tensors) of the calls in `picks`, whose outputs should resemble `like`. BadMessage where they cannot be read."""
        try:
            trees, only = reply["tree"], references([reply["tree"][i] for i in picks])
        except (TypeError, IndexError, KeyError, RecursionError) as error:
            for fd in fds:
                os.close(fd)
            raise BadMessage(f"the outputs cannot be read: {error}") from error
        limit = 4 * sum(t.nbytes + 512 for t in like) * len(trees) + (1 << 20)
        try:
            tensors, read = self.opened.tensors(reply.get("shared"), fds, limit, only), []
            for i in picks:
                flatten(unflatten(trees[i], tensors), got := [])
                read.append((trees[i], got))
        except (BadMessage, TypeError, IndexError, KeyError, ValueError) as error:
            raise BadMessage(f"the outputs cannot be read: {error}") from error
        return read

    def _differs(self, got: tuple, expected: tuple, reference: Reference, inputs, seed: int) -> str | None:
        """What is wrong with an output."""
        if wrong := structure(got[0], expected[0]):
            return wrong
        doubts = None
        for i, (o, e) in enumerate(zip(got[1], expected[1], strict=True)):
            wrong = mismatch(o, e, self.options.tolerance)
            if wrong and e.dtype in HALF:
                doubts = doubts or reference.doubts(inputs, seed, expected[1])
                wrong = mismatch(o, e, self.options.tolerance, doubts[i])
            if wrong:
                return wrong
        return None

    def check(self, reference: Reference, *name, mode: str = "count") -> dict | None:
        reply, wrong = self.call(reference, *name, mode=mode)
        if wrong:
            raise Stop("wrong", wrong)
        return reply

    def bears(self, reference: Reference, how: str, *name) -> bool:
        """Whether the model stays finite on the draw `name` with moved inputs. Asked of a contestant that runs the reference: on a GPU an
        index or a probability out of range ends the process."""
        tree = flatten(reference.inputs(*name, how=how), tensors := [], exact=True)
        try:
            reply, fds = self._send({"do": "call", "tree": tree, "seed": 0}, tensors, self.options.call_s)
            outputs = self.opened.tensors(reply.get("shared"), fds, None)
        except (Stop, BadMessage):
            self.lost = True
            return False
        return all(t.isfinite().all() for t in outputs if t.is_floating_point())

    def right_despite(self, reference: Reference, mode: str, kernel: str | None = None) -> bool:
        """Whether the output is right although what `kernel` (or every own kernel) writes was replaced."""
        try:
            return self.call(reference, "knockout", self.folder, kernel, mode=mode, kernel=kernel)[1] is None
        except Stop as stop:  # the candidate could not live with the numbers: it needs the kernel
            self.lost |= self.process.dead or (self.device == "cuda" and stop.status == "runtime_error")
            return False

    def timing(self, reference: Reference, last: dict) -> list[float]:
        """Samples of one forward in ms; `last`: the reply to a call."""
        if self.device == "cpu":
            return [positive(last.get("ms"))]
        samples = self.clocked(reference)
        read = sum(t.nbytes for t in leaves(reference.expected("reference", 0)[0]))
        floor = 0.5 * read / self.referee.bandwidth * 1e3
        if self.entry == "ModelNew" and statistics.median(samples) < floor < reference.timing["ms"]:
            fast = f"{statistics.median(samples) * 1e3:.1f} us is less than half of what reading the inputs once takes"
            raise Stop("hack", f"The time is impossible: {fast} ({floor * 2e3:.1f} us).", "impossible time")
        return samples

    def clocked(self, reference: Reference) -> list[float]:
        """What the contestant's events say of one forward, in ms, as far as the referee's own clock confirms it.

        The clock starts before the inputs of a block of forwards are where the contestant can see them, and stops with the message that
        commits all outputs, some of which are taken and checked at once. What a block takes beyond its events (filling in the inputs, the
        messages, the head start of the CPU) is known from the reference, timed in the same way in a process of its own. A block whose
        events leave more unexplained than 3 % or 2 us a forward is not believed; where no more than half of the blocks are, and more blocks
        do not help, the referee's clock is the figure, and events that are far from it are a hack."""
        plan = self._plan(reference)
        blocks, wanted = [], self.options.blocks
        for _ in range(3):
            with self.referee.use_gpu():
                stock = self._draws(reference, plan.calls * wanted + 2)
                self._prepare(plan, stock[0])
            with self.referee.use_gpu(alone=True):
                blocks += self._blocks(reference, plan, stock, wanted)
            with self.referee.use_gpu():
                for block in blocks[-wanted:]:
                    self._check(reference, block)
            own = min(b.wall - sum(b.events) for b in blocks)
            overhead = own if self.entry == "Model" else plan.overhead
            good = [b for b in blocks if b.unexplained(overhead) <= max(0.03 * statistics.mean(b.events), 0.002)]
            if 2 * len(good) > len(blocks):
                break
        if self.entry == "Model":
            plan.overhead = overhead
        if not good or 2 * len(good) <= len(blocks):
            slow = min(b.unexplained(overhead) for b in blocks)
            said = statistics.mean(e for b in blocks for e in b.events)
            if slow > max(0.25 * said, 0.010):
                text = f"its events say {said * 1e3:.1f} us a forward, the referee's clock {(said + slow) * 1e3:.1f} us"
                raise Stop("hack", f"The process reports times that cannot be: {text}.", "clock")
            return [e + slow for b in blocks for e in b.events]
        return [e for b in good for e in b.samples()]

    def _plan(self, reference: Reference) -> "Plan":
        """How this task's forwards are timed: settled when the reference is, and the same for all its candidates."""
        if reference.plan is None:
            inputs, (_, outputs, _) = reference.expected("reference", 0)
            nbytes = sum(t.nbytes for t in leaves(inputs) + outputs)
            most = int(self.options.memory_gib * 2**30 / max(nbytes, 1) / (self.options.blocks + 2))
            reference.plan = Plan(max(2, min(64, most)), outputs)
        return reference.plan

    def _draws(self, reference: Reference, number: int) -> list[list]:
        """Inputs that this contestant has not seen before, however often it is timed."""
        first, self.drawn = self.drawn, self.drawn + number
        return [reference.inputs("timed", self.folder, first + i) for i in range(number)]

    def _prepare(self, plan: "Plan", like: list):
        """Show where the inputs of a block will lie, with zeros there."""
        slots = []
        self.layout = [flatten(like, slots, exact=True) for _ in range(plan.calls)]
        self._send({"do": "prepare", "tree": self.layout}, [torch.zeros_like(t) for t in slots], self.options.call_s)

    def _blocks(self, reference: Reference, plan: "Plan", stock: list, wanted: int) -> list["Block"]:
        """`wanted` blocks of plan.calls forwards each, or of fewer where that many would take too long."""
        self.referee.steady()
        calls, blocks, at = 2, [], 0
        while len(blocks) < wanted:
            if at + calls > len(stock):
                stock += self._draws(reference, calls)
            block = self._block(reference, plan, stock[at : at + calls])
            at += calls
            fits = max(2, min(plan.calls, int(1e3 * self.options.most_s * calls / block.wall)))
            if fits > calls:  # this one showed how many forwards a block can have; it warms up too
                calls, blocks = fits, []
            else:
                blocks.append(block)
        return blocks

    def _block(self, reference: Reference, plan: "Plan", draws: list) -> "Block":
        self.clock_runs += 1
        seed = reference.number("call", "timed", self.folder, self.clock_runs) % 2**30
        tensors = []
        trees = [flatten(inputs, tensors, exact=True) for inputs in draws]
        message = {"do": "block", "calls": len(draws), "seed": seed, "ahead": 0.2 * len(draws)}
        if trees != self.layout[: len(draws)]:  # other numbers among the inputs
            message |= {"tree": trees, "shared": self.arena.spec}
        self.process.ask({"do": "settle"}, timeout=self.options.call_s)
        begin = time.perf_counter()
        self.arena.refill(tensors)
        self.referee.flush()
        reply, fds = self.process.ask(message, self.arena.fds if "tree" in message else (), self.options.call_s)
        wall = self.process.channel.arrived - begin
        picks = sorted(random.SystemRandom().sample(range(len(draws)), min(3, len(draws))))
        try:
            outputs = [(tree, [t.clone() for t in got]) for tree, got in self._read(reply, fds, picks, plan.like)]
        except BadMessage as error:
            raise Stop("wrong", f"In a timed call {error}") from None
        events = self.process.more(self.options.call_s).get("ms")
        if not isinstance(events, list) or len(events) != len(draws):
            raise Stop("hack", "The candidate's process sent no times.", "protocol")
        checks = [(draws[i], seed + i, output) for i, output in zip(picks, outputs)]
        return Block(1e3 * wall, [positive(e) for e in events], checks)

    def _check(self, reference: Reference, block: "Block"):
        for inputs, seed, output in block.checks:
            if wrong := self._differs(output, reference.forward(inputs, seed), reference, inputs, seed):
                raise Stop("wrong", f"In a timed call {wrong}")
        block.checks = []

    def profile(self, reference: Reference, last: dict) -> list[tuple[str, float, float, bool]]:
        """Kernel rows: name, ms per forward, launches per forward, own (by the launches of the call `last`)."""
        if self.device == "cpu":
            return claims(last.get("kernels"), (str, float, int, bool))
        tensors = []
        trees = [flatten(reference.inputs("profile", i), tensors, exact=True) for i in range(3)]
        reply, _ = self._send({"do": "profile", "tree": trees}, tensors, self.options.call_s)
        rows = claims(reply.get("rows"), (str, float, (int, float)))
        return [(name, ms, float(n), True) for name, ms, n in rows]


@dataclass
class Plan:
    """How a task's forwards are timed: `calls` a block, outputs like `like`; `overhead`: ms that a block takes beyond its events, None until the reference is timed."""

    calls: int
    like: list[torch.Tensor]
    overhead: float | None = None


@dataclass
class Block:
    """A block of timed forwards: `wall` ms by the referee's clock, `events` ms of each forward as the contestant says, outputs to be checked."""

    wall: float
    events: list[float]
    checks: list[tuple]

    def unexplained(self, overhead: float) -> float:
        """ms per forward that the events do not account for."""
        return (self.wall - sum(self.events) - overhead) / len(self.events)

    def samples(self) -> list[float]:
        """The events; their mean, which the clock has confirmed, where a few of them carry most of the time."""
        mean = statistics.mean(self.events)
        return self.events if mean <= 1.1 * statistics.median(self.events) + 0.002 else [mean] * len(self.events)


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
