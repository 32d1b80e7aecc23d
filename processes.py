"""One training run over several processes: torchrun's ranks, sums over them, signals.

A machine with several GPUs and one process gets one process per GPU (`one_process_per_gpu`). Each process sees its own GPU
only, as cuda:0. One process on the CPU needs no process group.
"""

import contextlib
import os
import signal
import socket
import sys
import threading
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
OF_TORCHRUN = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # the store at MASTER_ADDR is torchrun's


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
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "600")  # seconds to save in after SIGTERM; torch >= 2.12
    run = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}"]
    os.execv(sys.executable, [sys.executable, *run, *argv])


class StartError(RuntimeError):
    """Another process could not start; the text is what the user reads."""


def join(device: str, sharded: bool) -> None:
    """The process group: gloo, and NCCL beside it on GPUs. None for a single process that does not shard."""
    backend = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
    if WORLD > 1:
        how = {"store": _store(server=RANK == 0), "rank": RANK, "world_size": WORLD}
        _all_here(how["store"])
    elif not sharded:
        return
    else:
        how = {} if "MASTER_ADDR" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    dist.init_process_group(backend, timeout=timedelta(hours=2), **how)


def _store(server: bool = False, seconds: float = 600) -> dist.TCPStore:
    """A connection to the store of all processes: torchrun's, else process 0's."""
    server = server and not OF_TORCHRUN
    where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return dist.TCPStore(*where, is_master=server, wait_for_workers=False, timeout=timedelta(seconds=seconds))


def _all_here(store: dist.TCPStore, minutes: float = 10) -> None:
    """Waits for all processes. Errors: StartError where one has failed before this, or does not come."""
    store.set(f"here/{RANK}", "")
    until = time.monotonic() + 60 * minutes
    while missing := [rank for rank in range(WORLD) if not store.check([f"here/{rank}"])]:
        if store.check(["failed"]):
            raise StartError(f"process {store.get('failed').decode()}")
        if time.monotonic() > until:
            raise StartError(
                f"process {missing[0]} of {WORLD} has not come within {minutes:.0f} minutes: see its machine"
            )
        time.sleep(0.2)


@contextlib.contextmanager
def _failure_at_start_is_told():
    """torchrun's store outlives the processes: who waits for this one reads there why it does not come."""
    try:
        yield
    except BaseException as error:
        if WORLD > 1 and OF_TORCHRUN and not dist.is_initialized() and not isinstance(error, StartError):
            why = (str(error).splitlines() or [type(error).__name__])[0][:300]
            _store(seconds=10).set("failed", f"{RANK} on {socket.gethostname()} could not start: {why}")
        raise


def board() -> dist.Store | None:
    """A store that all processes see, over a connection of its own, whatever the collectives are doing; None for a single one."""
    if WORLD == 1:
        return None
    return dist.PrefixStore(f"watchdog/{env('TORCHELASTIC_RESTART_COUNT', 0)}", _store(seconds=10))


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


@contextlib.contextmanager
def one_sentence(script: str, mutual: tuple[type[Exception], ...], own: tuple[type[Exception], ...] = ()):
    """Ends the process with a sentence where the user can mend what went wrong. mutual: errors that every process raises at
    once; own: those of one process."""
    try:
        with _failure_at_start_is_told():
            yield
    except own as error:
        sys.exit(f"{script}: {error}")
    except StartError as error:
        sys.exit(f"{script}: {error}" if LOCAL_RANK == 0 else 1)
    except mutual as error:
        if RANK != 0 and (dist.is_initialized() or LOCAL_RANK != 0):
            time.sleep(3)  # torchrun ends the others at the first exit: let process 0 speak
            sys.exit(1)
        leave(wait=False)
        sys.exit(f"{script}: {error}")
    except torch.OutOfMemoryError:
        free, total = (x / 2**30 for x in torch.cuda.mem_get_info())
        sys.exit(
            f"{script}: out of GPU memory ({free:.0f} of {total:.0f} GiB free): if another process is using the GPU, stop it or "
            "choose another with CUDA_VISIBLE_DEVICES; else lower --micro-tokens, --rollout-batch or --max-response. The last "
            "checkpoint is whole: continue with --resume"
        )
    except OSError as error:
        sys.exit(
            f"{script}: {error.filename}: {error.strerror}. Make room or choose another --out; what was written is whole."
        )
    except RuntimeError as error:
        if WORLD == 1 or not lost(error):
            raise
        why = "the connection to another process broke: it has died, or the network has"
        print(
            f"{script}: process {RANK} of {WORLD} ends: {why}. The last checkpoint is whole: --resume", file=sys.stderr
        )
        sys.stderr.flush()
        os._exit(1)  # what is left of the process group might wait for the dead
    except KeyboardInterrupt:
        sys.exit("Stopped at once. What was saved before is whole: where there is a checkpoint, continue with --resume")


def lost(error: BaseException) -> bool:
    """Whether a collective broke because of another process."""
    return isinstance(error, dist.DistError) or "gloo" in str(error)


class Stopped(Exception):
    """Raised in the middle of work that may be given up, when this process was told to stop."""


class Stop:
    """Ctrl-C, SIGTERM or `ask` (the file OUT/stop) as a flag. Calling it is the processes' agreement; `check` gives up the work
    inside `abandonable`. A second signal, 3 s later or more, ends at once. A context manager: handlers are put back."""

    def __init__(self):
        self.at, self.may_abandon = None, False
        self.reader, self.writer = os.pipe()  # tells of a signal while the main thread is stuck in a collective
        for end in (self.reader, self.writer):
            os.set_blocking(end, False)
        self.before = {n: signal.signal(n, self.on_signal) for n in (signal.SIGINT, signal.SIGTERM)}
        self.wakeup = signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for number, handler in self.before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self.wakeup)
        os.close(self.reader)
        os.close(self.writer)

    def on_signal(self, number, frame):
        if self.at is not None and time.monotonic() - self.at > 3:
            raise KeyboardInterrupt
        self.ask()

    def ask(self) -> None:
        if self.at is None:
            self.at = time.monotonic()
            if RANK == 0:  # not by print, whose buffer the signal may have found locked
                os.write(2, b"Stopping and saving; once more to stop at once, back to the last checkpoint.\n")

    def poll(self) -> None:
        """For another thread: asks where a signal has come that the main thread has not seen yet."""
        with contextlib.suppress(BlockingIOError):
            if {signal.SIGINT, signal.SIGTERM} & set(os.read(self.reader, 64)):
                self.ask()

    @contextlib.contextmanager
    def abandonable(self):
        """`with stop.abandonable(): ...`: work without collectives that ends early when this process is told to stop."""
        self.may_abandon = True
        try:
            yield
        except Stopped:
            pass
        finally:
            self.may_abandon = False

    def check(self) -> None:
        if self.at is None or not self.may_abandon or threading.current_thread() is not threading.main_thread():
            return
        if not (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()):
            raise Stopped

    def __call__(self) -> bool:
        """Whether any process was told to stop. Every process must ask at the same place."""
        return all_reduce([float(self.at is not None)], dist.ReduceOp.MAX)[0] > 0
