"""The referee's process: jobs come and verdicts go through a pipe, several at a time."""

import gc
import os
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import torch

from kernelbench.judge import Options, Referee, Verdict
from kernelbench.process import Fault, Zygote


def serve(connection, zygote: Zygote, device: str, key: bytes, options: Options, workers: int):
    """(number, task, code) in, (number, verdict) out, `workers` contestants at a time. Ends with the connection."""
    torch.set_num_threads(1 if device == "cpu" else 4)
    sys.setswitchinterval(2e-5)  # the thread whose clock runs should not wait for the others
    try:
        referee = Referee(device, key, options, zygote)
    except (Fault, RuntimeError) as error:
        connection.send(("failed", f"{error}"))
        return
    gc.freeze()  # a full look at the 180,000 objects of the imports takes 0.1 s, in which nothing else runs
    connection.send(("ready", referee.name))
    lock = threading.Lock()

    def work(number, task, code):
        try:
            verdict = referee.judge(task, code)
        except torch.AcceleratorError:  # the GPU context is lost, and everything after it: the gym starts a new referee
            traceback.print_exc()
            os._exit(1)
        except Exception:  # noqa: BLE001 a fault of ours must reach the gym, not vanish in a thread
            verdict = Verdict(device=referee.name, message=f"fault in the referee:\n{traceback.format_exc()}")
        with lock:
            connection.send((number, verdict))

    pool = ThreadPoolExecutor(workers)
    try:
        while True:
            pool.submit(work, *connection.recv())
    except (EOFError, OSError, KeyboardInterrupt):
        pool.shutdown(wait=False, cancel_futures=True)
        referee.close()
        os._exit(0)
