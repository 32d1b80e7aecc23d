"""A thread beside the training loop: notices a dead process, a dead launcher, a stall, a request to stop.

Every process writes a line to a store that all of them see (torchrun's, over a connection of its own) each TICK seconds: that it is
alive, how long ago it made progress, whether it was told to stop, what ended it. From these lines each process finds:

    a process silent for SILENT seconds, or one that says what ended it     -> end with a sentence
    torchrun gone (a process must not outlive its launcher and hold a GPU)  -> end with a sentence, and tell the others
    no progress anywhere for --stall-minutes                                -> every process's stacks to OUT/stalls/, once per stall
    another process told to stop, or the file OUT/stop                      -> this one is told too

Ending is os._exit: the main thread may be waiting in a collective that will never return. What the gym started ends with its parent.
Progress is what calls `beat`: a token of all sequences, a verdict, a micro-batch, a file of a checkpoint.
"""

import faulthandler
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from torch.distributed import Store

from processes import RANK, WORLD, Stop, lost, say

TICK = 2.0
SILENT = 40.0
SILENT_WHILE_STOPPING = 15.0  # torchrun tells the others to stop when one has died, and kills them 30 s later


def end(sentence: str) -> None:
    print(f"{Path(sys.argv[0]).name}: {sentence}", file=sys.stderr, flush=True)
    os._exit(1)


class Watchdog:
    """`with Watchdog(...) as watch`: watches until the end of the block. What an exception there says is told to the others.

    out: the run's folder. stall: seconds without progress. board: processes.board(), None for a single process.
    mutual: exceptions that every process raises by itself, and which are not told. The rest is for tests.
    """

    def __init__(
        self,
        out: Path,
        stall: float,
        stop: Stop,
        board: Store | None,
        mutual: tuple[type[BaseException], ...] = (),
        *,
        rank: int = RANK,
        world: int = WORLD,
        clock: Callable[[], float] = time.monotonic,
        end: Callable[[str], None] = end,
    ):
        self.out, self.stall, self.stop, self.board, self.mutual = out, stall, stop, board, mutual
        self.rank, self.world, self.clock, self.end = rank, world, clock, end
        self.launcher = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
        self.progress = self.looked = clock()
        self.dumped, self.ticks, self.unreachable = False, 0, None
        self.heard = {other: ({}, self.looked) for other in range(world) if other != rank}  # last line, since when
        self.over = (
            threading.Event()
        )  # two threads: a store that does not answer must not keep the other from seeing that
        self.threads = [threading.Thread(target=self.repeat, args=(f,), daemon=True) for f in (self.look, self.talk)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, error, _):
        self.over.set()
        if error is not None and not isinstance(error, self.mutual):
            why = "it lost its connection to another process" if lost(error) else f"{kind.__name__}: {error}"
            last = threading.Thread(target=self.tell, kwargs={"ended": why.splitlines()[0][:300]}, daemon=True)
            self.threads[1].join(5)
            last.start()
            self.threads.append(last)
        for thread in self.threads:
            thread.join(5)

    def beat(self, *_) -> None:
        """Progress. May raise processes.Stopped; see Stop.abandonable."""
        self.progress = self.clock()
        self.stop.check()

    def repeat(self, work: Callable[[], None]) -> None:
        while not self.over.wait(TICK):
            work()

    def tell(self, **more: str) -> None:
        if self.board is not None:
            self.ticks += 1
            line = {"tick": self.ticks, "host": socket.gethostname(), "idle": self.clock() - self.progress}
            line |= {"stop": self.stop.at is not None} | more
            self.board.set(str(self.rank), json.dumps(line))

    def talk(self) -> None:
        """Tells the others of this process, and reads what they told last."""
        if self.board is None or self.unreachable:
            return
        keys = list(map(str, self.heard))
        try:
            self.tell()
            keys = keys if self.board.check(keys) else [key for key in keys if self.board.check([key])]
            lines = [json.loads(text) for text in self.board.multi_get(keys)] if keys else []
        except RuntimeError as error:
            self.unreachable = str(error).splitlines()[0]
            return
        for key, line in zip(keys, lines, strict=True):
            if line != self.heard[int(key)][0]:
                self.heard[int(key)] = line, self.clock()

    def look(self) -> None:
        """Draws the conclusions."""
        now = self.clock()
        if now - self.looked > 3 * TICK:  # this process itself stood still: nothing is known of the others
            self.heard = {other: (line, now) for other, (line, _) in self.heard.items()}
        self.looked = now
        self.stop.poll()
        if self.rank == 0 and (self.out / "stop").exists():
            self.stop.ask()
        if self.launcher and os.getppid() != self.launcher:
            self.tell(ended="torchrun is gone")
            self.conclude("its launcher, torchrun, is gone")
        if self.unreachable:
            self.conclude(f"the store that all processes share is gone, and process 0 with it ({self.unreachable})")
        limit = SILENT if self.stop.at is None else SILENT_WHILE_STOPPING
        for other, (line, when) in self.heard.items():
            where = f"process {other}" + (f" on {line['host']}" if line else "")
            if "ended" in line:
                self.conclude(f"{where} has ended ({line['ended']})")
            elif now - when > limit:
                self.conclude(f"{where} has died or cannot be reached, nothing was heard of it for {now - when:.0f} s")
            elif line.get("stop"):
                self.stop.ask()
        idle = min([now - self.progress, *(line["idle"] + now - when for line, when in self.heard.values() if line)])
        if idle < self.stall:
            self.dumped = False
        elif not self.dumped:
            self.dumped = True
            self.dump(idle)

    def conclude(self, why: str) -> None:
        self.end(
            f"process {self.rank} of {self.world} ends: {why}. Continue from the last checkpoint with --resume {self.out}"
        )

    def dump(self, idle: float) -> None:
        path = self.out / "stalls" / f"process_{self.rank}.txt"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}: no progress for {idle / 60:.0f} minutes\n")
                file.flush()
                faulthandler.dump_traceback(file)
                file.write("\n")
        except OSError as error:
            where = f"it could not be written down where each of them is ({error})"
        else:
            where = f"where each of them is stands in {path.parent}"
        say(f"No process has made progress for {idle / 60:.0f} minutes: {where}.")
