"""The referee's end of one contestant: its private folder, its commands, and the checks of everything that comes back."""

import contextlib
import math
import os
import random
import time

import torch

from kernelbench.channel import BadMessage
from kernelbench.compare import apart, finite, mismatch, nearer, plainly_wrong, same, structure
from kernelbench.draws import HALF
from kernelbench.process import Fault, Process, Stop
from kernelbench.reference import WIDER, Reference
from kernelbench.timer import Timer, claims
from kernelbench.wire import Opened, Shared, flatten, references, unflatten

# Orders of two or three forwards in which what own kernels write is replaced, or one of them, and others in which it is not: nobody can count
ORDERS = [[c == "s" for c in order] for order in ("spp", "psp", "pps", "ssp", "sps", "pss")]
RECORDS = 6  # forwards until a model has recorded its graphs, at most
COMPILE = {"eager": None, "compile": "default", "max-autotune": "max-autotune"}  # torch.compile's modes


class Contest:
    """One contestant, as a context. referee: a judge.Referee; folder: private to the evaluation; entry: the class to construct."""

    def __init__(self, referee, folder: str, code: str, entry: str):
        self.referee, self.device, self.options = referee, referee.device, referee.options
        self.folder, self.entry = folder, entry
        self.path = os.path.join(self.folder, "kernel.py")
        with open(self.path, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(code)
        self.opened, self.fresh, self.lost, self.warmed = Opened(self.device), True, False, False
        self.took = math.inf  # ms of the last call, from message to message
        self.differs = False  # what knocked out a kernel last differed from what it had written
        self.graphs = False  # own kernels were launched in the first forward only
        self.forgot = False  # what they wrote last, as it was large: the timed forwards needed the memory
        self.compile = COMPILE[self.options.baseline] if entry == "Model" else None
        self.timer = Timer(self)

    def __enter__(self):
        config = {"device": self.device, "path": self.path, "folder": self.folder}
        config |= {"tf32": self.options.tf32, "precision": self.options.precision, "compile": self.compile}
        config |= {"simulate": self.options.simulate, "any_code": self.options.any_code or self.compile is not None}
        self.process: Process = self.referee.zygote.fork(config)
        self.sandbox = self.process.first(self.options.load_s)
        self.arena = self.referee.take_arena()
        return self

    def __exit__(self, *_):
        self.lost = True
        with (
            self.referee.use_gpu()
        ):  # to free memory is to wait for the GPU, which in a block waits for another process
            dead = self.process.close()
            self.opened.close()
            self.referee.give_arena(self.arena, dead)

    def load(self):
        self.process.ask({"do": "load", "entry": self.entry}, timeout=self.options.load_s)

    def warm(self):
        """What is slow the first time is done while nobody waits for the GPU."""
        if self.device == "cuda" and not self.warmed:
            self.warmed = True
            self.process.ask({"do": "warm", "launches": self.entry == "ModelNew"}, timeout=self.options.load_s)

    def _show(self, tensors: list[torch.Tensor]):
        """Copies of `tensors` into the shared memory."""
        self.arena.fill(tensors)
        self.settle()

    def settle(self):
        if self.device == "cuda":
            torch.cuda.current_stream().synchronize()

    def ask(self, message: dict, timeout: float) -> tuple[dict, list[int]]:
        """Ask with what the shared memory holds: the reply and its descriptors."""
        return self.process.ask(message | {"shared": self.arena.spec}, self.arena.fds, timeout)

    def build(self, reference: Reference, how: str = "name") -> tuple[list[str], list[str]]:
        """Construct the candidate's model, in one of the ways of Contestant.do_build: the names of the reference's parameters that found no
        place in it, and the other ways in which its weights may be the reference's."""
        with self.referee.use_gpu():
            reference.vary()
        self.how, names = how, [] if how == "seed" else list(reference.weights)
        tensors = [reference.weights[name] for name in names]
        try:
            init = flatten({"args": reference.args, "kwargs": reference.kwargs}, extra := [], exact=True)
        except TypeError as error:
            raise Fault(f"the task {reference.task.name} has an argument that cannot be sent: {error}") from None
        message = {"do": "build", "how": how, "names": names, "seed": reference.seed, "moved": reference.moved}
        message |= {"bold": reference.dared, "init": init}
        with self.referee.use_gpu():
            self._show(tensors + extra)
        reply, _ = self.ask(message, self.options.load_s)
        unmatched = reply.get("unmatched")
        unmatched = [str(n)[:100] for n in unmatched[:1000]] if isinstance(unmatched, list) else []
        return unmatched, ["order"] * (reply.get("derived") is True) + ["seed"] * bool(names)

    def call(self, reference: Reference, *name, mode: str = "count", kernel: str | None = None, brief: bool = False):
        """One forward on the draw `name`: (reply, None or what is wrong with its output). mode, kernel: see launches.py; brief: where all is
        wrong, no matter what and how far."""
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
            reply, fds = self.ask(message, slow if self.fresh else self.options.call_s)
            self.took = math.inf if self.fresh else 1e3 * (time.perf_counter() - began)
            if self.fresh:
                stack.enter_context(self.referee.use_gpu())
            try:
                (got,) = self.read(reply, fds, [0], expected[1])
                plainly = brief and any(map(plainly_wrong, got[1], expected[1]))
                wrong = "all is wrong" if plainly else self.wrong(got, expected, reference, name)
            except BadMessage as error:
                wrong = str(error)
            del expected  # a large one would be one too many beside the inputs
            if not wrong and self._changed(reference, name):
                wrong = "the kernel changed its inputs"
        self.fresh = False
        return reply, wrong

    def _changed(self, reference: Reference, name: tuple) -> bool:
        """Whether the inputs in the shared memory are neither those of the draw, to the bit, nor about what the model makes of them."""
        flatten(inputs := reference.given(*name), given := [])
        changed = [not same(now, t) for now, t in zip(self.arena.tensors, given)]
        if not any(changed):
            return False
        flatten(reference.given(*name), before := [])
        reference.forward(inputs, reference.number("call", *name) % 2**31)
        theirs = [not same(t, old) for t, old in zip(given, before)]
        return any(
            c and not (t and not mismatch(now, to)) for c, t, now, to in zip(changed, theirs, self.arena.tensors, given)
        )

    def read(self, reply: dict, fds: list[int], picks: list[int], like: list[torch.Tensor]) -> list[tuple]:
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

    def wrong(
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
            if wrong and wrong.few:
                seed = reference.number("call", *name) % 2**31 if seed is None else seed
                for others in reference.nearby(*name, seed=seed):
                    e = nearer(o, e, others[i])
                    if not (wrong := mismatch(o, e, self.options.tolerance, doubts and doubts[i])):
                        break
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
            reply, fds = self.ask({"do": "call", "tree": tree, "seed": 0}, self.options.call_s)
            outputs = self.opened.tensors(reply.get("shared"), fds, None)
        except (Stop, BadMessage):
            self.lost = True
            return False
        return all(map(finite, outputs))

    def needs(self, reference: Reference, own: list[str]) -> tuple[set[str], set[str], list[dict]]:
        """The own kernels that the output needs: not right with what all of them wrote on other inputs, nor with random numbers from the one.
        And those of which that is not known, because the process did not survive an earlier test. The tests of all of them are mixed with
        forwards of which nothing is replaced, and followed by one without a GPU: the replies to these."""
        if own and self.graphs:
            self.record_again(reference)
        elif own and self.forgot and not self.check(reference, "check", 2, "recorded", mode="record"):
            self.check(reference, "check", 1, "recorded", mode="record")
        order = random.SystemRandom().choice([[True]] if self.graphs else ORDERS) if own else []
        later = []
        for number, replaced in enumerate(order):
            if self.lost:
                break
            if not replaced:
                later.append(self.check(reference, "check", 1, "later", number, mode="copies"))
            elif self.right_despite(reference, "swap", None, number) and self.right_with_other_weights(reference):
                return set(), set(), later
        needed, left = set(), list(own)
        while left and not self.lost:
            kernel = left.pop()  # what makes indices for others comes early in a forward, and survives its test least
            if not all(self.right_despite(reference, how, kernel) for how in ("noise", "huge")):
                needed.add(kernel)
        if (
            self.device == "cpu" and own and not self.lost
        ):  # no timed forwards tell what becomes of the code after its tests
            later.append(self.check(reference, "check", 1, "later", len(order), mode="copies"))
        return needed, set(left), later

    def right_despite(self, reference: Reference, mode: str, kernel: str | None = None, number: int = 0) -> bool:
        """Whether the output is right although what `kernel` (or every own kernel) writes was replaced."""
        if self.graphs:
            return self._right_anew(reference, mode, kernel)
        try:
            name = "knockout", self.folder, mode, kernel, number
            reply, wrong = self.call(reference, *name, mode=mode, kernel=kernel, brief=True)
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
        """The same of a model that launches nothing once it has recorded its graphs: it is built anew and records them with what was
        replaced; the first forward without a launch counts. Among models of which nothing is replaced, and which must be right: it cannot
        tell them apart."""
        right = False
        for number, now in enumerate(random.SystemRandom().sample([mode, "count", "count", "count"], 4)):
            try:
                self.build(reference, self.how)
                for forward in range(RECORDS):
                    name = "knockout", self.folder, mode, kernel, number, forward
                    reply, wrong = self.call(reference, *name, mode=now, kernel=kernel)
                    if not any(mine for _, mine, _ in claims(reply.get("launches"), (str, bool, int))):
                        break
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
        self.build(reference, self.how)
        if wrong := self.call(reference, "recorded", self.folder, mode="record")[1]:
            raise Stop("wrong", f"Built again, the model is wrong: {wrong}")

    def rest(self):
        """Until it is timed again this contestant holds as little memory as it can."""
        self.process.ask({"do": "rest"}, timeout=self.options.call_s)
        with self.referee.use_gpu():
            self.arena.close()
        self.arena = Shared([], self.device)

    def flops(self, reference: Reference) -> int:
        """Of one forward; asked of a contestant that runs the reference."""
        tree = flatten(reference.inputs("profile", 0), tensors := [], exact=True)
        self._show(tensors)
        del tensors
        reply, _ = self.ask({"do": "flops", "tree": tree}, self.options.call_s)
        return int(reply["flops"])

    def profile(self, last: dict) -> list[tuple[str, float, float, bool]]:
        """Kernel rows: name, ms per forward, launches per forward, own (by the launches of the call `last`). On a GPU those of its timing."""
        if self.device == "cpu":
            return claims(last.get("kernels"), (str, float, int, bool))
        return [(name, ms, float(n), True) for name, ms, n in self.timer.rows]


def _near(output: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether it is worth to ask how exact the expected values are."""
    off, std = apart(expected, output)
    return off <= 0.1 * std
