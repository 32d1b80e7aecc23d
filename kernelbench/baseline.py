"""The reference's side of every comparison: its time and profile, taken in contestants of the candidates' kind.

A reference is timed once in full, with all that follows from it (what a block takes beyond its events, its profile, the draws that it
bears); then it stays in its process and is timed again for every candidate, as soon as that one is dead: alive it could keep the GPU busy
and the reference slow. Candidates that end within a few seconds of each other share that time. So both sides of a speed-up are seconds
apart, and no time from earlier, or from the disk, enters it.
"""

import contextlib
import time
from collections import OrderedDict

import torch

from kernelbench.contest import Contest
from kernelbench.process import Fault, Stop
from kernelbench.reference import Reference, moves
from kernelbench.roofline import traffic
from kernelbench.room import starved
from kernelbench.timer import middle

HEAVY = 1 << 29  # bytes of weights with which a reference's process does not wait for the next candidate


def beyond(peak, sizes: list[int]) -> int:
    """Bytes that a forward took beyond weights and outputs, by the peak that the reference's process tells."""
    return max(0, peak - sizes[0] - sizes[2]) if isinstance(peak, int) else 0


class Baseline:
    """For a judge.Referee, with whose locks and options it works."""

    def __init__(self, referee):
        self.referee, self.options, self.lock = referee, referee.options, referee.lock
        self.residents: OrderedDict[str, tuple[contextlib.ExitStack, Contest]] = OrderedDict()  # by the task's key

    def settle(self, reference: Reference, anew: bool = False):
        """Time the reference unless that is done. Fault where it cannot be; where memory was short, it is tried again each time."""
        with reference.timing_lock:
            if reference.timing is None or anew or (isinstance(reference.timing, str) and starved(reference.timing)):
                self._time(reference)
            if isinstance(reference.timing, str):
                raise Fault(reference.timing)

    def _time(self, reference: Reference):
        try:
            with contextlib.ExitStack() as stack:
                contest, first = self._open(stack, reference)
                if "peak" in first:  # only a GPU's memory is measured
                    reference.scratch = beyond(first["peak"], reference.sizes)
                contest.warm()
                contest.timer.calibrates = True
                samples = contest.timer.times(reference, first)
                contest.timer.calibrates, reference.beside = False, (time.monotonic(), samples, contest.timer.seen)
                with self.referee.use_gpu():
                    rows, flops = contest.profile(first), contest.flops(reference)
                for draw in range(
                    2, self.options.draws if self.referee.device == "cuda" else 0
                ):  # else the reference finds out
                    with self.referee.use_gpu():
                        reference.moves["check", draw] = self._move(contest, reference, draw)
                if not self.referee.simulated and not contest.lost:
                    contest.rest()
                    self._keep(reference, stack.pop_all(), contest)
        except Stop as stop:
            text = f"the task {reference.task.name} fails on its own reference: {stop.message}"
            if "OutOfMemoryError" in stop.message:
                total = self.referee.memory
                text += f"; it needs more than {reference.need() / 2**30:.1f} GiB, this GPU has {total / 2**30:.1f}"
            reference.timing = text
        else:
            with self.referee.use_gpu():
                reference.passes = reference.control(self.options.draws, self.options.tolerance)
                reference.work = traffic(reference), flops
            self.referee.tidy()
            reference.timing = {"ms": middle(samples), "samples": samples, "rows": rows}

    def _move(self, contest: Contest, reference: Reference, draw: int) -> str | None:
        """The first move of the draw's inputs on which the model stays finite; in other processes once `contest` has died of one."""
        for how in moves(draw):
            if reference.unknown(how):
                continue
            with contextlib.ExitStack() as stack:
                if contest.lost:
                    contest, _ = self._open(stack, reference)
                if contest.bears(reference, how, "check", draw) and reference.bears("check", draw, how=how):
                    return how
        return None

    def _open(self, stack: contextlib.ExitStack, reference: Reference) -> tuple[Contest, dict]:
        """A contestant that runs the reference, and its reply to a first call."""
        folder = stack.enter_context(self.referee.private_folder())
        contest = stack.enter_context(Contest(self.referee, folder, reference.task.source, "Model"))
        contest.load()
        contest.build(reference)
        return contest, contest.check(reference, "reference", 0)

    def _keep(self, reference: Reference, stack: contextlib.ExitStack, contest: Contest):
        """The reference's contestant stays, unless it takes much, and the longest unused one goes where there are many or memory gets scarce."""
        if reference.large() or reference.sizes[0] > HEAVY:
            stack.close()
            return
        with self.lock:
            old = [self.residents.pop(reference.task.key)] if reference.task.key in self.residents else []
            self.residents[reference.task.key] = stack, contest
            if len(self.residents) > self.options.residents or self._full():
                old.append(self.residents.popitem(last=False)[1])
        for stack, _ in old:
            stack.close()

    def clear(self):
        """No resident but those at work."""
        with self.lock:
            idle, self.residents = self.residents, OrderedDict()
        for stack, _ in idle.values():
            stack.close()

    def _full(self) -> bool:
        free, total = torch.cuda.mem_get_info() if self.referee.device == "cuda" else (1, 1)
        return free < total / 2

    def beside(self, reference: Reference) -> tuple[list[list[float]], list[dict]]:
        """The reference's samples now, in ms by block, and the GPU's states meanwhile."""
        if self.referee.simulated:
            return reference.timing["samples"], []
        with reference.resident_lock:
            taken, samples, seen = reference.beside
            if time.monotonic() - taken < self.options.fresh_s:
                return samples, seen
            try:
                return self._again(reference)
            except Stop:  # the others may have taken its memory
                self.clear()
            try:
                return self._again(reference)
            except Stop as stop:
                raise Fault(f"the task {reference.task.name} failed beside a candidate: {stop.message}") from None

    def _again(self, reference: Reference) -> tuple[list[list[float]], list[dict]]:
        with self.lock:
            stack, contest = self.residents.pop(reference.task.key, (contextlib.ExitStack(), None))
        with stack:
            if contest is None or contest.process.zygote is not self.referee.zygote:
                stack.close()
                contest, _ = self._open(stack, reference)
            contest.timer.seen = []
            samples = contest.timer.clocked(reference)
            contest.rest()
            reference.beside = time.monotonic(), samples, contest.timer.seen
            self._keep(reference, stack.pop_all(), contest)
        return samples, contest.timer.seen
