"""Who may take how much of a device's memory, what a forward will take of it, and whether an evaluation ended for want of it."""

import contextlib
import threading
import weakref
from dataclasses import dataclass

import torch
from torch.utils._pytree import tree_leaves

from kernelbench.modes import Mode


@dataclass(eq=False)
class Part:
    """What an evaluation has taken; shared: somebody else was there meanwhile."""

    nbytes: int
    shared: bool = False


class Room:
    """Memory of a device, `total` bytes, that evaluations take their parts of; who comes first is served first, and who is alone always."""

    def __init__(self, total: int):
        self.total, self.parts, self.door, self.condition = total, [], threading.Lock(), threading.Condition()

    @property
    def used(self) -> int:
        return sum(part.nbytes for part in self.parts)

    @contextlib.contextmanager
    def take(self, nbytes: int):
        part = Part(nbytes)
        with self.door, self.condition:
            self.condition.wait_for(lambda: not self.parts or self.used + nbytes <= self.total)
            self.parts.append(part)
            for each in self.parts:
                each.shared |= len(self.parts) > 1
        try:
            yield part
        finally:
            with self.condition:
                self.parts.remove(part)
                self.condition.notify_all()


def starved(error: Exception | str) -> bool:
    """Whether memory was short, by what the driver or torch says, here or in a contestant."""
    return "out of memory" in str(error).lower()


class Live(Mode):
    """Counts the bytes of what operators make while it is active, as long as that lives: `most` at once. On the meta device it costs no memory to
    know; what operators take within (a library's workspace) is not seen."""

    def __init__(self):
        super().__init__()
        self.now, self.most = 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        given = {t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        made = [t.untyped_storage() for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
        for memory in {memory._cdata: memory for memory in made}.values():
            if memory._cdata not in given:
                self._add(memory.nbytes())
                weakref.finalize(memory, self._add, -memory.nbytes())
        return out

    def _add(self, nbytes: int):
        self.now += nbytes
        self.most = max(self.most, self.now)
