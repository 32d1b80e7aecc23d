"""Processes for tests of several ranks: forked from a server that has imported torch and transformers, so that they start at once."""

import importlib
import multiprocessing
import os
import socket
import sys
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
THEIRS = [
    "torch",
    "torch.distributed.checkpoint",
    "torch.distributed.fsdp",
    "transformers",
    "triton",
    "tyro",
    "matplotlib.pyplot",
]
FORKS.set_forkserver_preload([*THEIRS, "transformers.models.qwen3.modeling_qwen3", "transformers.generation.utils"])


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def start(world: int, function, *args, log: Path, port: int | None = None) -> list:
    """`function(*args)`, a function of a test module, in `world` processes as torchrun would start them; what rank R prints goes
    to log/R.txt. port: of a store that outlives them, as torchrun's does."""
    shared = {
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": world,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port or free_port(),
    }
    shared |= {"TORCHELASTIC_USE_AGENT_STORE": port is not None}
    processes = []
    for rank in range(world):
        env = {k: str(v) for k, v in (shared | {"RANK": rank, "LOCAL_RANK": rank, "OMP_NUM_THREADS": 1}).items()}
        where = function.__module__, function.__name__
        processes.append(
            FORKS.Process(target=_enter, args=(env if world > 1 else {}, *where, args, log / f"{rank}.txt"))
        )
        processes[-1].start()
    return processes


def finish(processes: list, seconds: float = 300) -> list[int]:
    """Their exit codes; none is left behind."""
    try:
        for process in processes:
            process.join(seconds)
        return [process.exitcode for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.join()


def _enter(env: dict, module: str, function: str, args: tuple, log: Path) -> None:
    os.environ |= env  # before anything of ours is imported: processes.py reads it then
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    import torch

    torch.set_num_threads(1)
    getattr(importlib.import_module(module), function)(*args)
