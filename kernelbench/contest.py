"""The referee's end of one contestant: its private folder, its commands, and the checks of everything that comes back."""

import contextlib
import math
import os
import random
import statistics
import time
from dataclasses import dataclass

import torch

from kernelbench.channel import BadMessage
from kernelbench.clock import Gate
from kernelbench.compare import apart, finite, mismatch, same, structure
from kernelbench.process import Fault, Process, Stop
from kernelbench.reference import HALF, WIDER, Reference, nbytes
from kernelbench.wire import Held, Opened, Shared, flatten, references, unflatten

COMPILE = {"eager": None, "compile": "default", "max-autotune": "max-autotune"}  # torch.compile's modes
JITTER = 0.1  # ms at most by which a block's messages may be late unnoticed; twice that is no accident


class Contest:
    """One contestant, as a context. referee: a judge.Referee; folder: private to the evaluation; entry: the class to construct."""

    def __init__(self, referee, folder: str, code: str, entry: str):
        self.referee, self.device, self.options = referee, referee.device, referee.options
        self.folder, self.entry = folder, entry
        self.path = os.path.join(self.folder, "kernel.py")
        with open(self.path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(code)
        self.gate, self.opened = Gate(self.device), Opened(self.device)
        self.fresh, self.lost, self.clock_runs, self.drawn = True, False, 0, 0
        self.seen: list[dict] = []  # the GPU's state after each timed block
        self.cpu: dict[int, float] = {}  # ms for which the last block of so many forwards kept its CPU busy
        self.fastest = 0.0  # ms that half of the timed forwards stay below, by their events
        self.took = math.inf  # ms of the last call, from message to message, or of a forward in the last block
        self.cold = True  # the next block of full size allocates memory
        self.differs = False  # what knocked out a kernel last differed from what it had written
        self.graphs = False  # own kernels were launched in the first forward only
        self.calibrates = False  # what a block takes beyond its events is settled by this one
        self.compile = COMPILE[self.options.baseline] if entry == "Model" else None

    def __enter__(self):
        config = {"device": self.device, "path": self.path, "folder": self.folder}
        config |= {"tf32": self.options.tf32, "precision": self.options.precision, "compile": self.compile}
        config |= {"simulate": self.options.simulate, "any_code": self.options.any_code or self.compile is not None}
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

    def warm(self):
        """What is slow the first time is done while nobody waits for the GPU."""
        if self.device == "cuda":
            self.process.ask({"do": "warm", "launches": self.entry == "ModelNew"}, timeout=self.options.load_s)

    def _show(self, tensors: list[torch.Tensor]):
        """Copies of `tensors` into the shared memory."""
        self.arena.fill(tensors)
        self._settle()

    def _settle(self):
        if self.device == "cuda":
            torch.cuda.current_stream().synchronize()

    def _ask(self, message: dict, timeout: float) -> tuple[dict, list[int]]:
        """Ask with what the shared memory holds: the reply and its descriptors."""
        return self.process.ask(message | {"shared": self.arena.spec}, self.arena.fds, timeout)

    def build(self, reference: Reference, by_seed: bool = False) -> list[str]:
        """Construct the candidate's model; the names of the reference's parameters that found no place in it."""
        self.by_seed, tensors = by_seed, [] if by_seed else list(reference.weights.values())
        names = [] if by_seed else list(reference.weights)
        try:
            init = flatten({"args": reference.args, "kwargs": reference.kwargs}, extra := [], exact=True)
        except TypeError as error:
            raise Fault(f"the task {reference.task.name} has an argument that cannot be sent: {error}") from None
        message = {"do": "build", "names": names, "seed": reference.seed, "moved": reference.moved, "init": init}
        self._show(tensors + extra)
        reply, _ = self._ask(message, self.options.load_s)
        unmatched = reply.get("unmatched")
        return [str(n)[:100] for n in unmatched[:1000]] if isinstance(unmatched, list) else []

    def call(self, reference: Reference, *name, mode: str = "count", kernel: str | None = None):
        """One forward on the draw `name`: (reply, None or what is wrong with its output). mode, kernel: see launches.py."""
        with self.referee.use_gpu():
            if (inputs := reference.given(*name)) is None:  # the reference is not finite on this draw
                return None, None
            tree = flatten(inputs, tensors := [], exact=True)
            self._show(tensors)
            expected = reference.expected(*name, inputs=inputs)
        del inputs, tensors  # as the model left them
        message = {"do": "call", "tree": tree, "seed": reference.number("call", *name) % 2**31}
        message |= {"mode": mode, "kernel": kernel}
        with contextlib.ExitStack() as stack:
            if not self.fresh:
                stack.enter_context(self.referee.use_gpu())
            slow = self.options.build_s * (5 if self.compile else 1)
            began = time.perf_counter()
            reply, fds = self._ask(message, slow if self.fresh else self.options.call_s)
            self.took = math.inf if self.fresh else 1e3 * (time.perf_counter() - began)
            if self.fresh:
                stack.enter_context(self.referee.use_gpu())
            try:
                (got,) = self._read(reply, fds, [0], expected[1])
                wrong = self._differs(got, expected, reference, name)
            except BadMessage as error:
                wrong = str(error)
            if not wrong and self._changed(reference, name):
                wrong = "the kernel changed its inputs"
        self.fresh = False
        return reply, wrong

    def _changed(self, reference: Reference, name: tuple) -> bool:
        """Whether the inputs in the shared memory are neither those of the draw nor what the model makes of them."""
        flatten(inputs := reference.given(*name), given := [])
        changed = [not same(now, t) and bool(mismatch(now, t)) for now, t in zip(self.arena.tensors, given)]
        if any(changed):
            reference.forward(inputs, reference.number("call", *name) % 2**31)
        return any(c and bool(mismatch(now, t)) for c, now, t in zip(changed, self.arena.tensors, given))

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

    def _differs(
        self, got: tuple, expected: tuple, reference: Reference, name: tuple, seed: int | None = None
    ) -> str | None:
        """What is wrong with the output on a draw."""
        if wrong := structure(got[0], expected[0]):
            return wrong
        doubts = None
        for i, (o, e) in enumerate(zip(got[1], expected[1], strict=True)):
            wrong = mismatch(o, e, self.options.tolerance)
            if wrong and o.shape == e.shape and (e.dtype in HALF or (e.dtype in WIDER and _near(o, e))):
                seed = reference.number("call", *name) % 2**31 if seed is None else seed
                doubts = doubts or reference.doubts(reference.given(*name), seed, expected[1])
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
        self._show(tensors)
        del tensors
        try:
            reply, fds = self._ask({"do": "call", "tree": tree, "seed": 0}, self.options.call_s)
            outputs = self.opened.tensors(reply.get("shared"), fds, None)
        except (Stop, BadMessage):
            self.lost = True
            return False
        return all(map(finite, outputs))

    def right_despite(self, reference: Reference, mode: str, kernel: str | None = None) -> bool:
        """Whether the output is right although what `kernel` (or every own kernel) writes was replaced."""
        if self.graphs:
            return self._right_anew(reference, mode, kernel)
        try:
            reply, wrong = self.call(reference, "knockout", self.folder, mode, kernel, mode=mode, kernel=kernel)
            self.differs = bool(reply and reply.get("differs"))
            return wrong is None
        except Stop as stop:
            return self._needs(stop)

    def right_with_other_weights(self, reference: Reference) -> bool:
        """After a forward that was right with what the kernels wrote on other inputs: the same with what they write with other weights, if
        the inputs make no difference to them (a kernel that unpacks weights)."""
        if self.graphs or self.differs:
            return True
        try:
            self.call(reference, "knockout", self.folder, "reweigh", mode="reweigh")
        except Stop as stop:
            return not self.lost and self._needs(stop)
        return self.right_despite(reference, "swap")

    def _needs(self, stop: Stop) -> bool:
        """False: a candidate that could not live with the numbers needs the kernel."""
        self.lost |= self.process.dead or (self.device == "cuda" and stop.status == "runtime_error")
        return False

    def _right_anew(self, reference: Reference, mode: str, kernel: str | None) -> bool:
        """The same of a model that launches nothing after its first forward: it is built anew and records its graphs with what was replaced;
        the forward after that one counts. Among models of which nothing is replaced, and which must be right: it cannot tell them apart."""
        right = False
        for number, now in enumerate(random.SystemRandom().sample([mode, "count", "count", "count"], 4)):
            try:
                self.build(reference, self.by_seed)
                self.call(reference, "recorded", self.folder, mode, kernel, number, mode=now, kernel=kernel)
                wrong = self.call(reference, "knockout", self.folder, mode, kernel, number)[1]
            except Stop as stop:
                if now == "count":
                    raise
                return self._needs(stop)
            if now == mode:
                right = wrong is None
            elif wrong:
                raise Stop("wrong", f"Built again, the model is wrong: {wrong}")
        return right

    def record_again(self, reference: Reference):
        """What the kernels write in a first forward, for a model that launches them in no other."""
        self.build(reference, self.by_seed)
        if wrong := self.call(reference, "recorded", self.folder, mode="record")[1]:
            raise Stop("wrong", f"Built again, the model is wrong: {wrong}")

    def rest(self):
        """Until it is timed again this contestant holds as little memory as it can."""
        self.process.ask({"do": "rest"}, timeout=self.options.call_s)
        self.arena.close()
        self.arena = Shared([], self.device)

    def timing(self, reference: Reference, last: dict) -> list[list[float]]:
        """Samples of one forward in ms, by block; `last`: the reply to a call."""
        if self.referee.simulated:
            return [[positive(last.get("ms"))]]
        samples = self.clocked(reference)
        floor = 0.5 * nbytes(reference.like[1]) / self.referee.peaks[0] * 1e3
        if self.entry == "ModelNew" and self.fastest < floor < reference.timing["ms"]:
            fast = f"{self.fastest * 1e3:.1f} us is less than half of what writing the outputs once takes"
            raise Stop("hack", f"The time is impossible: {fast} ({floor * 2e3:.1f} us).", "impossible time")
        return samples

    def clocked(self, reference: Reference) -> list[list[float]]:
        """What the contestant's events say of one forward, in ms, by block, as far as the referee's own clock confirms it.

        The contestant queues a block of forwards while the referee holds a gate (clock.Gate); when it opens the clock starts and the inputs
        are filled in, of which the contestant has seen nothing before. The clock stops with the message that commits all outputs, some of
        which are taken and checked at once. What a block takes beyond its events and its inputs' filling in (the messages) is known from
        the reference, timed in the same way in a process of its own. A block is
        believed where its events leave no more unexplained than 3 % or 2 us a forward, or than the reference's own blocks did. Messages
        come late, never early: so one such block speaks for those that agree with it (1 %). A block whose CPU fell behind the GPU does not
        count. Where too few are left or they disagree, more blocks are timed, up to three times as many; where that does not help, the
        referee's clock is the figure, and events that are far from it are a hack, unless somebody else uses the GPU, which is waited for."""
        plan, trusted = self._plan(reference), self.entry == "Model"
        blocks, wanted = [], max(self.options.blocks, -(-8 // plan.calls))
        with self.referee.use_gpu():
            self._prepare(plan)
        for wait in (0.5, 1, 2, 4, 8, 0):
            good, shared = self._rounds(reference, plan, blocks, wanted)
            if not (wait and shared):
                break
            time.sleep(wait)  # somebody's kernel that hangs, perhaps
        self.fastest = middle([b.events for b in blocks])
        if 2 * len(good) < wanted and not trusted:
            slow = max(0.0, min(b.unexplained(plan) for b in blocks))
            said = statistics.mean(e for b in blocks for e in b.events)
            if slow > max(0.25 * said, 0.010, 2 * JITTER / plan.calls) and not shared:
                text = f"its events say {said * 1e3:.1f} us a forward, the referee's clock {(said + slow) * 1e3:.1f} us"
                raise Stop("hack", f"The process reports times that cannot be: {text}.", "clock")
            return [[e + slow for e in b.events] for b in blocks]
        return [b.samples() for b in good]

    def _rounds(self, reference: Reference, plan: "Plan", blocks: list, wanted: int) -> tuple[list["Block"], bool]:
        """Times up to three rounds of blocks, with the GPU to itself. The blocks that count; whether somebody else uses the GPU, where too few
        do or others will be measured by them."""
        with self.referee.use_gpu(alone=True):
            for _ in range(3):
                blocks += self._blocks(reference, plan, wanted)
                extra = [b.wall - b.ahead - b.filling - sum(b.events) for b in blocks]
                if self.calibrates:
                    plan.overhead, plan.jitter = min(extra), min(statistics.median(extra) - min(extra), JITTER)
                elif self.entry == "Model":
                    plan.overhead = min(*extra, plan.overhead)
                prompt = [b for b in blocks if b.busy <= b.ahead] or blocks
                good = [b for b in prompt if self.entry == "Model" or b.believed(plan)]
                good = prompt if good and agree([b.samples() for b in prompt]) else good
                if 2 * len(good) >= wanted and agree([b.samples() for b in good]):
                    break
            doubtful = self.calibrates or 2 * len(good) < wanted
            shared = doubtful and self.referee.cycles.shared()
        with self.referee.use_gpu():
            for block in blocks:
                self._check(reference, block)
        return good, shared

    def _plan(self, reference: Reference) -> "Plan":
        """How this task's forwards are timed: settled when the reference is, and the same for all its candidates."""
        if reference.plan is None:
            fit = int(self.referee.block / max(nbytes(reference.like), 1))
            reference.plan = Plan(max(1, min(self.options.calls, fit)), *reference.like, fit >= self.options.calls)
        return reference.plan

    def _draws(self, reference: Reference, number: int) -> list[tuple]:
        """Inputs, each with its name, that this contestant has not seen before, however often it is timed."""
        first, self.drawn = self.drawn, self.drawn + number
        names = [("timed", self.folder, first + i) for i in range(number)]
        return [(name, reference.inputs(*name)) for name in names]

    def _prepare(self, plan: "Plan"):
        """Show where the inputs of a block will lie, with zeros there."""
        slots = []
        self.layout = [flatten(plan.given, slots, exact=True) for _ in range(plan.calls)]
        self.arena.lay(slots)
        for t in self.arena.tensors:
            t.zero_()
        self._settle()
        self._ask({"do": "prepare", "tree": self.layout}, self.options.call_s)
        self.cold = True

    def _blocks(self, reference: Reference, plan: "Plan", wanted: int) -> list["Block"]:
        """`wanted` blocks of plan.calls forwards each, or of fewer where that many would take too long. The first of that size is not
        counted where its forwards are short: memory is allocated in it."""
        self.referee.cycles.steady()
        blocks, least = [], min(2, plan.calls)
        most = 1e3 * self.options.most_s
        calls = max(least, min(plan.calls, int(most / self.took)))
        while len(blocks) < wanted:
            began = time.perf_counter()
            block = self._block(reference, plan, self._draws(reference, calls))
            self.took = 1e3 * (time.perf_counter() - began) / calls
            if not plan.light:
                self._check(reference, block)
            fits = max(least, min(plan.calls, int(most / self.took)))
            if fits > calls:  # this one showed how many forwards a block can have; it warms up too
                calls, blocks = fits, []
            elif self.cold and block.wall < 200:
                self.cold, self.cpu = False, {}  # its CPU allocated memory
            else:
                blocks.append(block)
        self.seen.append(self.referee.state())
        return blocks

    def _block(self, reference: Reference, plan: "Plan", draws: list) -> "Block":
        self.clock_runs += 1
        seed = reference.number("call", "timed", self.folder, self.clock_runs) % 2**30
        tensors, names = [], [name for name, _ in draws]
        trees = [flatten(inputs, tensors, exact=True) for _, inputs in draws]
        ahead = self.referee.cycles.head_start(self.cpu, len(draws))
        message = {"do": "block", "calls": len(draws), "seed": seed, "gate": self.gate.number + 1}
        if trees != self.layout[: len(draws)]:  # other numbers among the inputs
            message |= {"tree": trees, "shared": self.arena.spec}
        self.process.ask({"do": "settle", "calls": len(draws)}, timeout=self.options.call_s)
        begin = message["began"] = time.perf_counter()
        self.gate.hold(int(ahead * self.referee.cycles.rate))
        self.arena.refill(tensors)
        self.referee.flush()
        self.gate.release(self.arena.gate)
        reply, fds = self.process.ask(message, self.arena.fds if "tree" in message else (), self.options.call_s)
        wall, ahead = self.process.channel.arrived - begin, self.gate.held()
        picks = sorted(random.SystemRandom().sample(range(len(names)), min(2, len(names))))
        try:
            outputs = [
                (tree, [Held(t, plan.light) for t in got]) for tree, got in self._read(reply, fds, picks, plan.like)
            ]
        except BadMessage as error:
            raise Stop("wrong", f"In a timed call {error}") from None
        claimed = self.process.more(self.options.call_s)
        events, busy = claimed.get("ms"), positive(claimed.get("busy"))
        self.cpu[len(draws)] = busy
        filling = self.referee.filling(sum(t.nbytes for t in tensors))
        draws.clear()
        if not isinstance(events, list) or len(events) != len(names):
            raise Stop("hack", "The candidate's process sent no times.", "protocol")
        checks = [(names[i], seed + i, output) for i, output in zip(picks, outputs)]
        return Block(1e3 * wall, [positive(e) for e in events], checks, ahead, busy, filling)

    def _check(self, reference: Reference, block: "Block"):
        if self.entry == "Model" and not self.calibrates:  # was checked when it was timed first
            block.checks = []
        for name, seed, (tree, held) in block.checks:
            expected = reference.forward(reference.inputs(*name), seed)
            if wrong := self._differs((tree, [h.t for h in held]), expected, reference, name, seed):
                raise Stop("wrong", f"In a timed call {wrong}")
            if any(h.moved() for h in held):
                raise Stop("wrong", "In a timed call the output changed after it had been handed over")
            del expected
        block.checks = []

    def flops(self, reference: Reference) -> int:
        """Of one forward; asked of a contestant that runs the reference."""
        tree = flatten(reference.inputs("profile", 0), tensors := [], exact=True)
        self._show(tensors)
        del tensors
        reply, _ = self._ask({"do": "flops", "tree": tree}, self.options.call_s)
        return int(reply["flops"])

    def profile(self, reference: Reference, last: dict) -> list[tuple[str, float, float, bool]]:
        """Kernel rows: name, ms per forward, launches per forward, own (by the launches of the call `last`)."""
        if self.device == "cpu":
            return claims(last.get("kernels"), (str, float, int, bool))
        tensors = []
        trees = [
            flatten(reference.inputs("profile", i), tensors, exact=True)
            for i in range(min(3, self._plan(reference).calls))
        ]
        self._show(tensors)
        del tensors
        reply, _ = self._ask({"do": "profile", "tree": trees}, self.options.call_s)
        rows = claims(reply.get("rows"), (str, float, (int, float)))
        return [(name, ms, float(n), True) for name, ms, n in rows]


@dataclass
class Plan:
    """How a task's forwards are timed: `calls` a block, on inputs like `given`, outputs like `like` (on the meta device); light: some outputs
    of every block can be held until they are checked; `overhead`: ms that a block takes beyond its events, `jitter`: that it may take beyond that (known once the
    reference is timed)."""

    calls: int
    given: list
    like: list[torch.Tensor]
    light: bool = True
    overhead: float = 0.0
    jitter: float = 0.0


@dataclass
class Block:
    """A block of timed forwards: `wall` ms by the referee's clock, `events` ms of each forward as the contestant says, outputs to be checked,
    `ahead` ms for which the gate was held, `busy` ms after which the contestant had queued all (says it), `filling` ms for the inputs."""

    wall: float
    events: list[float]
    checks: list[tuple]
    ahead: float = 0.0
    busy: float = 0.0
    filling: float = 0.0

    def unexplained(self, plan: Plan) -> float:
        """ms per forward that nothing accounts for."""
        return (self.wall - self.ahead - self.filling - sum(self.events) - plan.overhead) / len(self.events)

    def believed(self, plan: Plan) -> bool:
        return self.unexplained(plan) <= max(0.03 * statistics.mean(self.events), 0.002, plan.jitter / len(self.events))

    def samples(self) -> list[float]:
        """The events; their mean, which the clock has confirmed, where a few of them carry most of the time."""
        mean = statistics.mean(self.events)
        return self.events if mean <= 1.1 * statistics.median(self.events) + 0.002 else [mean] * len(self.events)


def middle(blocks: list[list[float]]) -> float:
    """The median of all samples."""
    return statistics.median(value for block in blocks for value in block)


def agree(blocks: list[list[float]]) -> bool:
    """Whether the blocks' medians lie within 1 % or 1 us (two steps of an event's clock) of each other."""
    medians = [statistics.median(block) for block in blocks]
    return max(medians) - min(medians) <= max(0.01 * min(medians), 0.001)


def _near(output: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether it is worth to ask how exact the expected values are."""
    off, std = apart(expected, output)
    return off <= 0.1 * std


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
