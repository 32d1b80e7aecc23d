"""Times one contestant by the referee's clock: blocks of forwards behind a gate, and what is believed of what the contestant says of them."""

import random
import statistics
import time
from dataclasses import dataclass

import torch

from kernelbench.channel import BadMessage
from kernelbench.clock import Gate
from kernelbench.process import Stop
from kernelbench.reference import Reference, nbytes
from kernelbench.wire import Held, flatten

JITTER = 0.05  # ms at most by which a block may be late unnoticed; twice that is no accident


class Timer:
    """Of one contest.Contest, however often it is timed."""

    def __init__(self, contest):
        self.contest, self.gate = contest, Gate(contest.device)
        self.runs, self.drawn = 0, 0
        self.seen: list[dict] = []  # the GPU's state after each timed block
        self.fastest = 0.0  # ms that half of the timed forwards stay below, by their events
        self.cold = True  # the next block of full size allocates memory
        self.calibrates = False  # what a block takes beyond its events is settled by this one
        self.rows: list[tuple] | None = None  # of the profile, see _profile

    def times(self, reference: Reference, last: dict) -> list[list[float]]:
        """Samples of one forward in ms, by block; `last`: the reply to a call."""
        if self.contest.referee.simulated:
            return [[positive(last.get("ms"))]]
        samples = self.clocked(reference)
        floor = 0.5 * nbytes(reference.like[1]) / self.contest.referee.peaks[0] * 1e3
        if self.contest.entry == "ModelNew" and self.fastest < floor < reference.timing["ms"]:
            fast = f"{self.fastest * 1e3:.1f} us is less than half of what writing the outputs once takes"
            raise Stop("hack", f"The time is impossible: {fast} ({floor * 2e3:.1f} us).", "impossible time")
        return samples

    def clocked(self, reference: Reference) -> list[list[float]]:
        """What the contestant's events say of one forward, in ms, by block, as far as the referee's own clock confirms it.

        The contestant queues a block of forwards behind a gate (clock.Gate). When it opens the inputs are filled in, of which the contestant
        has seen nothing before, and the clock of the referee's GPU starts; it stops when the contestant's GPU has said that all outputs
        are there and copies of some of them, which are checked, were taken. What a block takes beyond its events and its inputs (two
        changes between processes, the copies) is known from the reference, timed in the same way in a process of its own. A block is
        believed where its events leave no more unexplained than 3 % or 2 us a forward, or than the reference's own blocks did; one such
        block speaks for those that agree with it (1 %). One whose CPU was not ready when the gate opened counts where no other does (code
        that waits for its GPU), with its last message's time. Where too few are left or they disagree, more blocks are timed, up to three
        times as many; where that does not help, what is not explained is added, but for what would have been believed, and events that are
        far from the referee's clock are a hack, unless somebody else uses the GPU, which is waited for."""
        plan, trusted = self.plan(reference), self.contest.entry == "Model"
        blocks, wanted = [], max(self.contest.options.blocks, -(-8 // plan.calls))
        with self.contest.referee.use_gpu():
            self._prepare(plan)
        for wait in (0.5, 1, 2, 4, 8, 0):
            good, shared = self._rounds(reference, plan, blocks, wanted)
            if not (wait and shared):
                break
            time.sleep(wait)  # somebody's kernel that hangs, perhaps
        if 2 * len(good) < wanted and not trusted:
            counted = prompt(blocks)
            slow = max(0.0, min(b.unexplained(plan) for b in counted))
            added = max(0.0, min(b.unexplained(plan) - b.free(plan) for b in counted))
            said = statistics.mean(e for b in counted for e in b.events)
            if counted[0].prompt and slow > max(0.25 * said, 0.010, 2 * JITTER / plan.calls) and not shared:
                text = f"its events say {said * 1e3:.1f} us a forward, the referee's clock {(said + slow) * 1e3:.1f} us"
                raise Stop("hack", f"The process reports times that cannot be: {text}.", "clock")
            return [[e + added for e in b.events] for b in counted]
        return [b.samples(plan, trusted) for b in good]

    def _rounds(self, reference: Reference, plan: "Plan", blocks: list, wanted: int) -> tuple[list["Block"], bool]:
        """Times up to three rounds of blocks, with the GPU to itself. The blocks that count; whether somebody else uses the GPU, where too few
        do or others will be measured by them."""
        trusted = self.contest.entry == "Model"
        with self.contest.referee.use_gpu(alone=self.contest.process):
            for _ in range(3):
                blocks += self._blocks(reference, plan, wanted)
                self._calibrate(plan, blocks)
                counted = prompt(blocks)
                good = [b for b in counted if trusted or b.believed(plan)]
                good = counted if good and agree([b.samples(plan, trusted) for b in counted]) else good
                if 2 * len(good) >= wanted and agree([b.samples(plan, trusted) for b in good]):
                    break
            self.fastest = middle([b.events for b in blocks])
            if self.rows is None and self.contest.device == "cuda":
                self.rows = self._profile(reference, plan)
            doubtful = self.calibrates or 2 * len(good) < wanted
            shared = doubtful and self.contest.referee.cycles.shared()
        with self.contest.referee.use_gpu():
            for block in blocks:
                self._check(reference, block)
        return good, shared

    def _profile(self, reference: Reference, plan: "Plan") -> list[tuple[str, float, float]]:
        """Kernel rows by torch.profiler, while nobody else uses the GPU, which would stretch some of them: name, ms and launches per forward."""
        number = min(plan.calls, max(3, min(8, int(20 / self.fastest))))  # of short forwards more, about 20 ms
        tensors, names = [], [("profile", self.contest.folder, i) for i in range(number)]
        trees = [flatten(reference.inputs(*name), tensors, exact=True) for name in names]
        self.contest.arena.refill(tensors)
        self.contest.referee.flush()
        self.contest.settle()
        reply, _ = self.contest.ask({"do": "profile", "tree": trees}, self.contest.options.call_s)
        return claims(reply.get("rows"), (str, float, (int, float)))

    def _calibrate(self, plan: "Plan", blocks: list["Block"]):
        """What the reference's blocks take beyond their forwards, half of which take no longer than the median: the GPU's change from one process
        to the other lies now before a block's first event and now behind it. Of one that waits for its GPU, what those of other tasks do."""
        if self.contest.entry != "Model":
            return
        usual = middle([b.events for b in prompt(blocks)])
        known, extra = self.contest.referee, [b.wall - b.filling - usual * len(b.events) for b in prompt(blocks)]
        if not self.calibrates:
            plan.overhead = min(*extra, plan.overhead)
        elif prompt(blocks)[0].prompt:
            plan.overhead, plan.jitter = min(extra), min(statistics.median(extra) - min(extra), JITTER)
            known.overhead = min(known.overhead, plan.overhead)
        else:
            plan.overhead, plan.jitter = min(*extra, known.overhead), JITTER

    def plan(self, reference: Reference) -> "Plan":
        """How this task's forwards are timed: settled when the reference is, and the same for all its candidates."""
        if reference.plan is None:
            fit = int(self.contest.referee.block / max(nbytes(reference.like), 1))
            reference.plan = Plan(
                max(1, min(self.contest.options.calls, fit)), *reference.like, fit >= self.contest.options.calls
            )
        return reference.plan

    def _draws(self, reference: Reference, number: int) -> list[tuple]:
        """Inputs, each with its name, that this contestant has not seen before, however often it is timed."""
        first, self.drawn = self.drawn, self.drawn + number
        names = [("timed", self.contest.folder, first + i) for i in range(number)]
        return [(name, reference.inputs(*name)) for name in names]

    def _prepare(self, plan: "Plan"):
        """Show where the inputs of a block will lie, with zeros there."""
        slots = []
        self.layout = [flatten(plan.given, slots, exact=True) for _ in range(plan.calls)]
        self.contest.arena.lay(slots)
        for t in self.contest.arena.tensors:
            t.zero_()
        self.contest.settle()
        reply, _ = self.contest.ask({"do": "prepare", "tree": self.layout}, self.contest.options.call_s)
        self.contest.forgot, self.cold = reply.get("forgot") is True, True

    def _blocks(self, reference: Reference, plan: "Plan", wanted: int) -> list["Block"]:
        """`wanted` blocks of plan.calls forwards each, or of fewer where that many would take too long. The first of that size is not
        counted where its forwards are short: memory is allocated in it."""
        self.contest.referee.cycles.steady()
        blocks, least = [], min(2, plan.calls)
        most = 1e3 * self.contest.options.most_s
        calls = max(least, min(plan.calls, int(most / self.contest.took)))
        while len(blocks) < wanted:
            began = time.perf_counter()
            block = self._block(reference, plan, self._draws(reference, calls))
            self.contest.took = 1e3 * (time.perf_counter() - began) / calls
            if not plan.light:
                self._check(reference, block)
            fits = max(least, min(plan.calls, int(most / self.contest.took)))
            if fits > calls:  # this one showed how many forwards a block can have; it warms up too
                calls, blocks = fits, []
            elif self.cold and block.wall < 200:
                self.cold = False  # its CPU allocated memory
            else:
                blocks.append(block)
        self.seen.append(self.contest.referee.state())
        return blocks

    def _block(self, reference: Reference, plan: "Plan", draws: list) -> "Block":
        self.runs += 1
        seed = reference.number("call", "timed", self.contest.folder, self.runs) % 2**30
        tensors, names = [], [name for name, _ in draws]
        trees = [flatten(inputs, tensors, exact=True) for _, inputs in draws]
        message = {"do": "block", "calls": len(draws), "seed": seed, "gate": self.gate.number + 1}
        if trees != self.layout[: len(draws)]:  # other numbers among the inputs
            message |= {"tree": trees, "shared": self.contest.arena.spec}
        fds = self.contest.arena.fds if "tree" in message else ()
        self.contest.process.ask({"do": "settle", "calls": len(draws)}, timeout=self.contest.options.call_s)
        self.contest.settle()
        prompt, held = False, None
        if self.contest.device == "cuda":
            self.contest.process.tell(message, fds)
            if prompt := self.contest.process.answers(3e-3 + 1e-3 * len(draws)):  # else its CPU waits for its GPU
                held = self._held(plan, len(draws))
        self.gate.open(
            self.contest.arena.gate, lambda: (self.contest.arena.refill(tensors), self.contest.referee.flush())
        )
        if self.contest.device == "cpu":
            self.contest.process.tell(message, fds)
        picks, outputs = held or self._held(plan, len(draws))
        self.gate.close(lambda: [h.take() for _, got in outputs for h in got])
        try:
            events = self.contest.process.more(self.contest.options.call_s).get("ms")
        except Stop:
            self.gate.abandon()
            raise
        if (wall := self.gate.wall()) is None:
            raise Stop("hack", "The candidate's process says that it is done, and its GPU does not.", "protocol")
        filling = self.contest.referee.filling(sum(t.nbytes for t in tensors))
        draws.clear()
        if not isinstance(events, list) or len(events) != len(names):
            raise Stop("hack", "The candidate's process sent no times.", "protocol")
        checks = [(names[i], seed + i, output) for i, output in zip(picks, outputs)]
        return Block(wall, [positive(e) for e in events], checks, filling, prompt or self.contest.device == "cpu")

    def _held(self, plan: "Plan", calls: int) -> tuple[list[int], list[tuple]]:
        """Which outputs of a block will be taken, and places for them."""
        # who begins too early lacks the first one's input, who says too early that all is done the last; any other may be skipped
        picks = sorted({0, calls - 1, *random.SystemRandom().sample(range(calls), min(2, calls))})
        reply, fds = self.contest.process.reply(self.contest.options.call_s)
        try:
            return picks, [
                (tree, [Held(t, plan.light) for t in got])
                for tree, got in self.contest.read(reply, fds, picks, plan.like)
            ]
        except BadMessage as error:
            raise Stop("wrong", f"In a timed call {error}") from None

    def _check(self, reference: Reference, block: "Block"):
        if self.contest.entry == "Model" and not (self.calibrates and reference.plan.light):
            block.checks = []  # it was checked when it was timed first, a large one when it was called first
        for name, seed, (tree, held) in block.checks:
            expected = reference.forward(reference.inputs(*name), seed)
            if wrong := self.contest.wrong((tree, [h.t for h in held]), expected, reference, name, seed):
                raise Stop("wrong", f"In a timed call {wrong}")
            if any(h.moved() for h in held):
                raise Stop("wrong", "In a timed call the output changed after it had been handed over")
            del expected
        block.checks = []


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
    `filling` ms for the inputs; prompt: all was queued before the gate opened."""

    wall: float
    events: list[float]
    checks: list[tuple]
    filling: float = 0.0
    prompt: bool = True

    def unexplained(self, plan: Plan) -> float:
        """ms per forward that nothing accounts for."""
        return (self.wall - self.filling - sum(self.events) - plan.overhead) / len(self.events)

    def free(self, plan: Plan) -> float:
        """ms per forward that need no explanation."""
        return max(0.03 * statistics.mean(self.events), 0.002, plan.jitter / len(self.events))

    def believed(self, plan: Plan) -> bool:
        return self.unexplained(plan) <= self.free(plan)

    def samples(self, plan: Plan, trusted: bool = False) -> list[float]:
        """The events; where a few of them carry most of the time that the clock confirms, their mean, unless they are trusted: then
        something else came between."""
        mean, confirmed = statistics.mean(self.events), (self.wall - self.filling - plan.overhead) / len(self.events)
        whole, usual = min(mean, confirmed), statistics.median(self.events)
        return self.events if trusted or whole <= 1.1 * usual + 0.002 else [whole] * len(self.events)


def middle(blocks: list[list[float]]) -> float:
    """The median of all samples."""
    return statistics.median(value for block in blocks for value in block)


def prompt(blocks: list[Block]) -> list[Block]:
    """Those that were queued before their gate opened; all, where none was."""
    return [b for b in blocks if b.prompt] or blocks


def agree(blocks: list[list[float]]) -> bool:
    """Whether the blocks' medians lie within 1 % or 1 us (two steps of an event's clock) of each other."""
    medians = [statistics.median(block) for block in blocks]
    return max(medians) - min(medians) <= max(0.01 * min(medians), 0.001)


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
