"""One training run over several processes: torchrun's ranks, sums over them, signals.

A machine with several GPUs and one process gets one process per GPU (`one_process_per_gpu`). Each process sees its own GPU
only, as cuda:0. One process on the CPU needs no process group.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from datetime import timedelta

import torch
import torch.distributed as dist
from tqdm import tqdm


def env(name: str, default: int) -> int:
    return int(os.environ.get(name, default))


RANK, WORLD, LOCAL_RANK, LOCAL_WORLD = (
    env("RANK", 0),
    env("WORLD_SIZE", 1),
    env("LOCAL_RANK", 0),
    env("LOCAL_WORLD_SIZE", 1),
)


def own_gpu() -> None:
    """Leaves one GPU to this process where there are several processes. Before anything touches CUDA."""
    if LOCAL_WORLD > 1:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(LOCAL_WORLD)))).split(",")
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[LOCAL_RANK] if LOCAL_RANK < len(visible) else ""


def one_process_per_gpu(argv: list[str]) -> None:
    """Replaces a single process by torchrun with one process per visible GPU, where there are several."""
    gpus = torch.cuda.device_count()
    if WORLD > 1 or gpus < 2:
        return
    print(f"{gpus} GPUs: starting one process for each (CUDA_VISIBLE_DEVICES=0 keeps to one).", flush=True)
    ours = ("TORCHELASTIC_", "GROUP_", "ROLE_", "MASTER_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    for name in [name for name in os.environ if name.startswith(ours)]:
        del os.environ[name]
    run = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}"]
    os.execv(sys.executable, [sys.executable, *run, *argv])


def join(device: str, sharded: bool) -> None:
    """The process group: gloo, and NCCL beside it on GPUs. None for a single process that does not shard."""
    if WORLD == 1 and not sharded:
        return
    backend = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
    alone = {} if "MASTER_ADDR" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    dist.init_process_group(backend, timeout=timedelta(hours=2), **alone)


def leave(wait: bool = True) -> None:
    """Ends the process group, once every process is done with it where `wait`."""
    if dist.is_initialized():
        if wait:
            dist.barrier()
        dist.destroy_process_group()


def say(text: str) -> None:
    """Prints once, above the progress bar."""
    if RANK == 0:
        tqdm.write(text)


def all_reduce(values: Sequence[float], op=dist.ReduceOp.SUM) -> list[float]:
    """Numbers summed (or as `op` says) over the processes, in float64."""
    if WORLD == 1:
        return list(values)
    tensor = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(tensor, op)
    return tensor.tolist()


def from_rank_0(value):
    box = [value]
    if WORLD > 1:
        dist.broadcast_object_list(box, src=0)
    return box[0]


def over_processes(line: dict[str, tuple[float, float]]) -> dict[str, float | None]:
    """(sum, count) of each metric on each process -> its mean over all of them; None where nothing was counted."""
    numbers = all_reduce([x for pair in line.values() for x in pair])
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return {name: total / count if count else None for name, (total, count) in zip(line, pairs, strict=True)}


def gathered(records: list) -> list:
    """The lists of all processes as one, on each of them."""
    if WORLD == 1:
        return records
    parts = [None] * WORLD
    dist.all_gather_object(parts, records)
    return [r for part in parts for r in part]


class Stop:
    """Ctrl-C and SIGTERM as a flag that is looked at between phases; a second one, 3 s later or more, ends at once."""

    def __init__(self):
        self.at = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.on_signal)

    def on_signal(self, number, frame):
        if self.at is not None and time.monotonic() - self.at > 3:
            raise KeyboardInterrupt
        if self.at is None:
            self.at = time.monotonic()
            say("Stopping after this phase; once more to stop at once, back to the last checkpoint.")

    def __call__(self) -> bool:
        """Whether any process was told to stop. Every process must ask at the same place."""
        return all_reduce([float(self.at is not None)], dist.ReduceOp.MAX)[0] > 0
