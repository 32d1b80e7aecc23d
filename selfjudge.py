"""Every task judged against itself: `python bench.py selfjudge path/to/KernelBench/level1`.

`ModelNew` is the task's own model, so each must come out correct, with a speed-up of 1.00. What does not is a mistake of the judge or a task
that cannot run here, and the table says which: the worst first. Verdicts are appended to a file as they come; the same command goes on where an
interrupted one stopped. --memory judges one task at a time and reads from the driver how much of the GPU the referee and its contestants
took together at most.
"""

import collections
import ctypes
import hashlib
import json
import math
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import torch
import tyro
from tqdm import tqdm

from gym import Gym, GymError, Job, reference_code
from kernelbench import Task, TaskError, load_tasks
from kernelbench.judge import Options


@dataclass
class SelfJudge:
    """Judge tasks against themselves."""

    tasks: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="TASK...")]
    """what load_tasks takes: a checkout of KernelBench, level1, hf:ScalingIntelligence/KernelBench, .."""
    out: Path = Path("selfjudge.jsonl")
    """where the verdicts go, one JSON line each; those that are there already are not judged again"""
    memory: bool = False
    """one task at a time, with the peak of the GPU's memory"""
    workers: int | None = None
    """contestants at a time per device; default: the gym's own"""
    device: str | None = None
    """cuda or cpu; default: the GPU if there is one"""
    call_s: float = 60.0
    """seconds until a forward is given up"""
    seed: int = 0

    def run(self) -> int:
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        if self.memory and device == "cpu":
            sys.exit("bench.py: --memory reads a GPU's memory; there is none here")
        options = Options(any_code=True, load_s=120.0, build_s=300.0, call_s=self.call_s)
        try:
            tasks = load_tasks(*self.tasks, device=device)
            rows = self.judged(tasks, device, options)
        except (TaskError, GymError) as error:
            sys.exit(f"bench.py: {error}")
        print(table(rows))
        return 0 if all(row["status"] == "correct" for row in rows) else 1

    def judged(self, tasks: list[Task], device: str, options: Options) -> list[dict]:
        """A row of each task, in their order."""
        mark = {t.name: sha(t.key, t.name, device, options, self.seed, self.memory) for t in tasks}
        lines = self.out.read_text().splitlines() if self.out.exists() else []
        kept = [json.loads(line) for line in lines if line.endswith("}")]  # the last may be half a line
        kept = [row for row in kept if row["status"] != "gym_error"]  # what was wrong may have been mended
        rows = {row["task"]: row for row in kept if mark.get(row["task"]) == row["mark"]}
        left = [t for t in tasks if t.name not in rows]
        if self.out.exists():
            self.out.write_text("".join(json.dumps(row) + "\n" for row in kept))
        bar = tqdm(total=len(tasks), initial=len(rows), desc="judging", unit="task")
        used = Used() if self.memory else None
        with bar, self.out.open("a") as file, Gym(device, gpus=[0] if used else None, workers=1 if used else self.workers, seed=self.seed, options=options) as gym:  # fmt: skip
            for batch in [[t] for t in left] if used else [left]:
                for index, verdict in gym.as_completed([Job(t, reference_code(t)) for t in batch]):
                    row = {"task": batch[index].name, "mark": mark[batch[index].name]} | asdict(verdict)
                    row["peak"] = used.peak() if used else None
                    rows[row["task"]] = row
                    file.write(json.dumps(row) + "\n")
                    file.flush()
                    bar.update()
        return [rows[t.name] for t in tasks]


def sha(*parts) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Used:
    """The most bytes of the first visible GPU that were in use beyond those at the start, by the driver's management library, looked at
    every 2 ms: no process needs a context for that."""

    def __init__(self):
        self.library, self.handle, self.most = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), 0
        uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}".encode()
        code = self.library.nvmlInit_v2() or self.library.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(self.handle))
        if code:
            raise GymError(f"the driver does not tell the GPU's memory (NVML error {code}); leave --memory out")
        self.start = self.now()
        threading.Thread(target=self._watch, daemon=True).start()

    def now(self) -> int:
        memory = _Memory()
        if code := self.library.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(memory)):
            raise GymError(f"the driver does not tell the GPU's memory (NVML error {code})")
        return memory.used

    def _watch(self):
        while True:
            self.most = max(self.most, self.now())
            time.sleep(0.002)

    def peak(self) -> int:
        """Since it was last asked for."""
        peak, self.most = max(self.most, self.now()) - self.start, 0
        return peak


def table(rows: list[dict]) -> str:
    """What is not correct first, then by how far the speed-up is from 1."""

    def worst(row: dict) -> tuple:
        return row["status"] == "correct", -abs(math.log(row["speedup"] or 1.0)), row["task"]

    width = max(len(row["task"][:48]) for row in rows)
    lines = [f"{'task':{width}}  {'status':13}  speed-up               ms   in + out GiB  peak     s  note"]
    for row in sorted(rows, key=worst):
        low, high = row["speedup_ci"] or (0.0, 0.0)
        speed = f"{row['speedup']:5.2f} [{low:.2f}, {high:.2f}]" if row["speedup"] else ""
        size = sum(row["memory"].get(name, 0) for name in ("inputs", "outputs"))
        peak = f"{row['peak'] / max(size, 1):4.2f}x" if row["peak"] and size >= 1 << 30 else ""
        note = " ".join(row["message"].split())
        lines.append(
            f"{row['task'][:48]:{width}}  {row['status']:13}  {speed:18}  {row['reference_ms'] or 0:8.3f}  {size / 2**30:12.3f}  "
            f"{peak:5}  {row['seconds'].get('total', 0):4.1f}  {note[:110]}"
        )
    counts = collections.Counter(row["status"] for row in rows)
    off = [row["task"] for row in rows if row["speedup"] and not 0.97 <= row["speedup"] <= 1.03]
    passes = [row["task"] for row in rows if row["status"] == "correct" and row["message"]]
    large = [row["peak"] / sum(row["memory"][n] for n in ("inputs", "outputs")) for row in rows if row["peak"] and row["memory"].get("outputs", 0) >= 1 << 30]  # fmt: skip
    lines.append(f"\n{len(rows)} tasks: {', '.join(f'{n} {status}' for status, n in counts.most_common())}")
    lines.append(f"speed-up off by more than 3 %: {len(off)}{': ' if off else ''}{', '.join(off)}")
    lines.append(f"cannot tell right from wrong: {len(passes)}{': ' if passes else ''}{', '.join(passes)}")
    if large:
        lines.append(
            f"peak of memory where the outputs are 1 GiB or more: {max(large):.2f} x (inputs + outputs) at most"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(tyro.cli(SelfJudge, description=__doc__).run())
