"""How far a time can be trusted: the GPU's state while it was measured, and the interval of a speed-up.

The state comes from NVML (the driver's own library, by ctypes; nothing to install) and from a kernel that waits a fixed number of cycles:
where that takes longer although the clock is what it was, somebody else uses the GPU. Without NVML the verdict says so.
"""

import contextlib
import ctypes
import math
import os
import time
from pathlib import Path

import numpy as np
import torch

from kernelbench.wire import _cuda

# What lowers the clock, by NVML's bits; idleness (1) and the display's (256) are none of a timed kernel's
REASONS = {
    2: "application clocks",
    4: "power cap",
    8: "hardware slowdown",
    16: "sync boost",
    32: "temperature",
    64: "temperature (hardware)",
    128: "power brake",
}
BETWEEN = 0.0025  # relative spread (1 sigma) of one kernel's time between processes, which no repetition within one shows: `bench.py timing`


UNKNOWN = {"sm_mhz": None, "reasons": None}


class Cycles:
    """The GPU's clock, by a kernel that waits for a fixed number of cycles. On the CPU nothing waits."""

    def __init__(self, device: str):
        self.device, self.fastest = device, math.inf  # ms that 2,000,000 cycles took at best

    def wait(self, times: int = 1) -> float:
        """ms that 2,000,000 cycles take, about 1; the mean of so many in a row."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        torch.cuda._sleep(2_000_000 * times)
        end.record()
        end.synchronize()
        spent = start.elapsed_time(end) / times
        self.fastest = min(self.fastest, spent)
        return spent

    def steady(self):
        """Waits (100 ms at most) until the clock runs as fast as it ever did here: an idle GPU lowers it."""
        for _ in range(50 if self.device == "cuda" else 0):
            if self.wait() < 1.01 * self.fastest:
                return

    def stretch(self) -> float:
        """How much longer than ever before a fixed number of cycles takes."""
        return self.wait() / self.fastest

    def shared(self) -> bool:
        """Whether other processes use the GPU just now: they take turns of some ms."""
        return self.device == "cuda" and self.wait(8) > 1.05 * self.fastest


class Gate:
    """Between its opening and its closing a contestant does a block of forwards; the time is that of the referee's GPU (without one, of the CPU).

    The contestant queues its work behind the gate. It opens after the inputs were filled in, so that work which waits for nothing finds
    nothing to work on; it closes when the contestant's GPU says that the outputs are there and some of them have been taken, so that
    who says so too early is wrong. Both are numbers in the memory that the two share (wire.Shared.gate): blocks are counted there, in the
    first by the referee, in the second by the contestant."""

    def __init__(self, device: str):
        self.device, self.number, self.words = device, 0, torch.zeros(2, dtype=torch.int32)
        self.ends, self.aside = [0.0, 0.0], None
        if device == "cuda":  # made now: to make a stream waits for those that wait
            self.ends, self.aside = [torch.cuda.Event(enable_timing=True) for _ in range(2)], torch.cuda.Stream()

    def open(self, words: torch.Tensor, fill):
        """words: int32 (2,); fill() queues the inputs."""
        self.words, self.number = words, self.number + 1
        self._mark(0)
        fill()
        if self.device == "cuda":
            write_number(words[:1], self.number)

    def close(self, take):
        """take() queues copies of outputs."""
        if self.device == "cuda":
            wait_for_number(self.words[1:], self.number)
        take()
        self._mark(1)

    def _mark(self, end: int):
        if self.device == "cuda":
            self.ends[end].record()
        else:
            self.ends[end] = 1e3 * time.perf_counter()

    def wall(self, patience: float = 5.0) -> float | None:
        """ms from opening to closing; None where the contestant's GPU has not said `patience` seconds later that it is done."""
        if self.device == "cpu":
            return self.ends[1] - self.ends[0]
        until = time.monotonic() + patience
        while not self.ends[1].query():
            if time.monotonic() > until:
                self.abandon()
                return None
            time.sleep(2e-5)
        return self.ends[0].elapsed_time(self.ends[1])

    def abandon(self):
        """The referee's GPU waits no longer for a contestant that is lost."""
        if self.device == "cuda":
            with torch.cuda.stream(self.aside):
                write_number(self.words[1:], self.number)
            self.ends[1].synchronize()


def wait_for_number(word: torch.Tensor, number: int):
    """Nothing that is queued on the current stream after this call runs before `word` has reached `number`."""
    _cuda("cuStreamWaitValue32_v2", *_place(word), number, 0)


def write_number(word: torch.Tensor, number: int):
    """Queued on the current stream, after all that was queued there before."""
    _cuda("cuStreamWriteValue32_v2", *_place(word), number, 0)


def _place(word: torch.Tensor) -> tuple:
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), ctypes.c_uint64(word.data_ptr())


class _Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]


class Watch:
    """NVML's view of the first visible GPU. missing: what is not known, in words, or None."""

    def __init__(self):
        self.handle, self.missing, self.looked, self.found = ctypes.c_void_p(), None, -math.inf, None
        try:
            self.nvml, bus = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.create_string_buffer(32)
            _cuda("cuDeviceGetPCIBusId", bus, 32, 0)  # whatever CUDA_VISIBLE_DEVICES calls it
            self._ask("nvmlInit_v2")
            self._ask("nvmlDeviceGetHandleByPciBusId_v2", bus, ctypes.byref(self.handle))
        except (OSError, AttributeError, RuntimeError) as error:
            self.missing = f"clocks, throttling and other processes are unknown: {error}"

    def _ask(self, name: str, *args):
        if code := getattr(self.nvml, name)(*args):
            raise RuntimeError(f"{name} failed with NVML error {code}")

    def _number(self, kind, name: str, *args) -> int | None:
        value = kind()
        with contextlib.suppress(AttributeError, RuntimeError):
            self._ask(name, self.handle, *args, ctypes.byref(value))
            return value.value
        return None

    def __call__(self) -> dict:
        """sm_mhz and reasons (NVML's bits) just now; None where the driver does not say."""
        if self.missing:
            return UNKNOWN
        reasons = self._number(ctypes.c_ulonglong, "nvmlDeviceGetCurrentClocksThrottleReasons")
        return {"sm_mhz": self._number(ctypes.c_uint, "nvmlDeviceGetClockInfo", 1), "reasons": reasons}

    def others(self) -> int | None:
        """How many processes of somebody else hold the GPU; looked up every few seconds: it reads a file for each of ours."""
        if time.monotonic() - self.looked > 5:
            self.looked, self.found = time.monotonic(), self._others()
        return self.found

    def _others(self) -> int | None:
        if self.missing:
            return None
        count, rows = ctypes.c_uint(128), (_Process * 128)()
        try:
            self._ask("nvmlDeviceGetComputeRunningProcesses_v3", self.handle, ctypes.byref(count), rows)
        except (AttributeError, RuntimeError):
            return None
        return strangers([row.pid for row in rows[: count.value]], os.getpid())


def strangers(pids: list[int], mine: int) -> int | None:
    """How many of `pids` are neither ancestors nor descendants of the process `mine`; None where they are numbers of another PID namespace."""
    if mine not in pids:
        return None
    family = set(_line(mine))
    return sum(pid not in family and mine not in _line(pid) for pid in pids)


def _line(pid: int) -> list[int]:
    """A process and its ancestors."""
    line = []
    while pid > 0:
        line.append(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return line


def summary(states: list[dict], watch: Watch | None) -> dict:
    """The GPU while blocks were timed: `states` are Referee.state()s. {} for simulated times. contended: None where that cannot be told
    from a lower clock."""
    if not states:
        return {}
    clocks = [s["sm_mhz"] for s in states if s["sm_mhz"]]
    bits = [s["reasons"] for s in states if s["reasons"] is not None]
    throttled = [name for bit, name in REASONS.items() if any(b & bit for b in bits)]
    stretch = max(s["stretch"] for s in states)
    return {
        "sm_mhz": [min(clocks), max(clocks)] if clocks else None,
        "throttled": throttled,
        "others": watch and watch.others(),
        "stretch": round(stretch, 3),
        "contended": None if stretch > 1.05 and not bits else stretch > 1.05 and not throttled,
        "missing": watch and watch.missing,
    }


def interval(
    reference: list[list[float]], kernel: list[list[float]], between: float = 0.0, resamples: int = 1000
) -> list[float]:
    """95 % interval of median(reference) / median(kernel), samples by block: a bootstrap over blocks and over the samples in them, since
    those of one block err alike, widened by what differs from process to process (`between`, relative, on both sides)."""
    if not between and sum(map(len, kernel)) == sum(map(len, reference)) == 1:
        return [reference[0][0] / kernel[0][0]] * 2
    generator = np.random.default_rng(0)
    logs = [np.log(_medians(blocks, resamples, generator)) for blocks in (reference, kernel)]
    centre = np.log(np.median(np.concatenate(reference)) / np.median(np.concatenate(kernel)))
    low, high = np.quantile(logs[0] - logs[1], [0.025, 0.975], method="inverted_cdf")
    more = 1.96 * between * 2**0.5
    low, high = centre - np.hypot(max(centre - low, 0.0), more), centre + np.hypot(max(high - centre, 0.0), more)
    return [float(np.exp(low)), float(np.exp(high))]


def _medians(blocks: list[list[float]], resamples: int, generator) -> np.ndarray:
    """Medians of bootstrap samples, (resamples,)."""
    lengths = np.array([len(block) for block in blocks])
    values = np.zeros((len(blocks), lengths.max()))  # (blocks, samples), padded
    for row, block in zip(values, blocks):
        row[: len(block)] = block
    chosen = generator.integers(len(blocks), size=(resamples, len(blocks)))
    which = (generator.random((*chosen.shape, lengths.max())) * lengths[chosen][:, :, None]).astype(int)
    return np.median(values[chosen[:, :, None], which].reshape(resamples, -1), axis=1)
