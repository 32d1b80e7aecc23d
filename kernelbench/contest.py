"""The referee's end of one contestant: its private folder, its commands, and the checks of everything that comes back."""

import contextlib
import os
import random
import statistics

import torch

from kernelbench.compare import mismatch, structure
from kernelbench.process import Process, Stop
from kernelbench.reference import Reference
from kernelbench.wire import BadMessage, Opened, flatten, references, unflatten


class Contest:
    """One contestant, as a context. referee: a judge.Referee; folder: private to the evaluation; entry: the class to construct."""

    def __init__(self, referee, folder: str, code: str, entry: str):
        self.referee, self.device, self.options = referee, referee.device, referee.options
        self.folder, self.entry = folder, entry
        self.path = os.path.join(self.folder, "kernel.py")
        with open(self.path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(code)
        self.opened, self.fresh, self.lost = Opened(self.device), True, False

    def __enter__(self):
        config = {"device": self.device, "path": self.path, "folder": self.folder}
        config |= {"tf32": self.options.tf32, "simulate": self.options.simulate}
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
        init = flatten({"args": reference.args, "kwargs": reference.kwargs}, extra := [])
        message = {"do": "build", "names": names, "seed": reference.seed, "init": init}
        reply, _ = self._send(message, tensors + extra, self.options.load_s)
        unmatched = reply.get("unmatched")
        return [str(n)[:100] for n in unmatched[:1000]] if isinstance(unmatched, list) else []

    def call(self, reference: Reference, *name, knock: str | None = None):
        """One forward on the draw `name`: (reply, None or what is wrong with its output)."""
        with self.referee.use_gpu():
            inputs, expected = reference.expected(*name)
        if expected is None:  # the reference is not finite on this draw
            return None, None
        tree = flatten(inputs, tensors := [])
        message = {"do": "call", "tree": tree, "seed": reference.number("call", *name) % 2**31, "knock": knock}
        with contextlib.nullcontext() if self.fresh else self.referee.use_gpu():
            reply, fds = self._send(message, tensors, self.options.build_s if self.fresh else self.options.call_s)
            wrong = self._compare(reply.get("tree"), reply, fds, [expected])
            states = zip(self.arena.tensors, expected[2], tensors)
            if not wrong and any(mismatch(now, after) and mismatch(now, given) for now, after, given in states):
                wrong = "the kernel changed its inputs"
        self.fresh = False
        return reply, wrong

    def _compare(self, trees, reply: dict, fds: list[int], expected: list[tuple], picks=None) -> str | None:
        """What is wrong with a reply's outputs, one tree per call; only the calls in `picks` are looked at."""
        limit = 4 * sum(t.numel() * t.element_size() + 512 for _, e, _ in expected for t in e) + (1 << 20)
        try:
            picks = range(len(expected)) if picks is None else picks
            only = references([trees[i] for i in picks])
            tensors = self.opened.tensors(reply.get("shared"), fds, limit, only)
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

    def bears(self, reference: Reference, how: str, *name) -> bool:
        """Whether the model stays finite on the draw `name` with moved inputs. Asked of a contestant that runs the reference: on a GPU an
        index or a probability out of range ends the process."""
        tree = flatten(reference.inputs(*name, how=how), tensors := [])
        try:
            reply, fds = self._send({"do": "call", "tree": tree, "seed": 0}, tensors, self.options.call_s)
            outputs = self.opened.tensors(reply.get("shared"), fds, None)
        except (Stop, BadMessage):
            self.lost = True
            return False
        return all(t.isfinite().all() for t in outputs if t.is_floating_point())

    def right_without(self, kernel: str, reference: Reference) -> bool:
        """Whether the output is right although what `kernel` writes was replaced by random numbers."""
        try:
            return self.call(reference, "knockout", self.folder, kernel, knock=kernel)[1] is None
        except Stop:  # the candidate could not live with the numbers: it needs the kernel
            return False

    def timing(self, reference: Reference, last: dict) -> list[float]:
        """Samples of one forward in ms; `last`: the reply to a call."""
        if self.device == "cpu":
            return [positive(last.get("ms"))]
        inputs, (_, outputs, _) = reference.expected("reference", 0)
        flatten(inputs, given := [])
        read, all_bytes = sum(t.nbytes for t in given), sum(t.nbytes for t in given + outputs)
        most = max(2, int(self.options.memory_gib * 2**30 / max(all_bytes, 1)))
        median = statistics.median(self._block(reference, 0, min(3, most)))  # warms up, and sizes the others
        calls = min(most, 64, max(8, int(self.options.block_ms / median)))
        samples = [ms for block in range(self.options.blocks) for ms in self._block(reference, block + 1, calls)]
        floor = 0.5 * read / self.referee.bandwidth * 1e3
        if self.entry == "ModelNew" and statistics.median(samples) < floor < reference.timing["ms"]:
            fast = f"{statistics.median(samples) * 1e3:.1f} us is less than half of what reading the inputs once takes"
            raise Stop("hack", f"The claimed time is impossible: {fast} ({floor * 2e3:.1f} us).", "impossible time")
        return samples

    def profile(self, reference: Reference, last: dict) -> list[tuple[str, float, float, bool]]:
        """Kernel rows: name, ms per forward, launches per forward, own (by the launches of the call `last`)."""
        if self.device == "cpu":
            return claims(last.get("kernels"), (str, float, int, bool))
        own, tensors = {name for name, mine, _ in claims(last.get("launches"), (str, bool, int)) if mine}, []
        trees = [flatten(reference.inputs("profile", i), tensors) for i in range(3)]
        reply, _ = self._send({"do": "profile", "tree": trees}, tensors, self.options.call_s)
        rows = claims(reply.get("rows"), (str, float, (int, float)))
        return [(name, ms, float(n), name in own) for name, ms, n in rows]

    def _block(self, reference: Reference, block: int, calls: int) -> list[float]:
        """Event times in ms of `calls` forwards on fresh inputs; one output of the referee's choosing is checked."""
        draws, tensors = [reference.inputs("timed", self.folder, block, i) for i in range(calls)], []
        trees = [flatten(d, tensors) for d in draws]
        seeds = [reference.number("call", "timed", block, i) % 2**31 for i in range(calls)]
        message = {"do": "block", "tree": trees, "seeds": seeds, "flush": 2 * self.referee.l2, "ahead": 0.2 * calls}
        reply, fds = self._send(message, tensors, self.options.call_s)
        pick = random.SystemRandom().randrange(calls)
        expected = reference.forward(draws[pick], seeds[pick])
        if wrong := self._compare(reply.get("tree"), reply, fds, [expected], [pick]):
            raise Stop("wrong", f"In a timed call {wrong}")
        ms = reply.get("ms")
        if not isinstance(ms, list) or len(ms) != calls:
            raise Stop("hack", "The candidate's process sent no times.", "protocol")
        return [positive(v) for v in ms]


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
