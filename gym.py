"""The environment: many kernels in, verdicts out, over all GPUs (or Triton's interpreter where there is none).

    python gym.py level1/3 my_kernel.py             judge one kernel, print a report
    python gym.py toy/test/17 my_kernel.py --json   the verdict as JSON
    python gym.py level2/1 reference --any-code     the task judged against itself: must say 1.00
    python gym.py level1/3 my_kernel.py --baseline compile --precision bf16
    python gym.py level1/3 kernels/                 every kernel of a folder: a table, and verdicts.jsonl as they come
    python gym.py doctor                            what this machine offers and what is missing

One referee process per device (`kernelbench/judge.py`), each with several contestants at a time; an identical text for the same task is
judged once in a Gym's life; a dead referee is restarted and its jobs are retried once. With --cluster the referees are those of a Ray
cluster (`cluster.py`).
"""

import contextlib
import hashlib
import json
import os
import pickle
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro
from tqdm import tqdm

import cluster as ray_cluster
from feedback import overview, report
from kernelbench import Task, TaskError, load_tasks, times
from kernelbench.judge import Options, Verdict

REMEMBERED = 20_000  # verdicts that a Gym keeps: an identical text for the same task is judged once
BOOT = """
import os, sys
sys.path.insert(0, sys.argv[1])
from multiprocessing.connection import Connection
connection = Connection(int(sys.argv[2]))
from kernelbench.process import Zygote
zygote = Zygote(sys.argv[3])  # both of them import torch for seconds
from kernelbench.serve import serve
serve(connection, zygote, *connection.recv())
"""


class GymError(RuntimeError):
    """The gym cannot work here; the text says what to do."""


@dataclass(frozen=True)
class Job:
    """One kernel to judge: `code` is Python source that defines ModelNew, or None where an answer held no code."""

    task: Task
    code: str | None


def reference_code(task: Task) -> str:
    """The task's own model under the name ModelNew: what A/A runs and the self-judging of tasks submit (with any_code)."""
    return f"{task.source}\n\nclass ModelNew(Model):\n    pass\n"


class Gym:
    """Judges jobs. A context manager; `evaluate` may be called from many threads at once.

    device: "cuda", "cpu" or None (GPUs if there are any); gpus: which of the visible ones (default: all); workers: contestants at a time per device; seed: fixes the secret key of all
    random inputs (None: a fresh random key); any_code: no Triton kernel of its own is no offence; options: see `judge.Options`;
    cluster: "auto", "ray://host:port" or any other address of a Ray cluster: device and workers are then those of its actors.
    retried: how many jobs were judged again because what judged them was lost.
    """

    def __init__(
        self,
        device: str | None = None,
        *,
        gpus: Sequence[int] | None = None,
        workers: int | None = None,
        seed: int | None = None,
        any_code: bool = False,
        options: Options | None = None,
        cluster: str | None = None,
    ):
        if device not in (None, "cuda", "cpu"):
            raise GymError(
                f"There is no device {device}: name cuda (a GPU) or cpu (Triton's interpreter, simulated times)."
            )
        seed = secrets.randbits(256) if seed is None else seed
        options = options or Options()
        self.options = replace(options, any_code=any_code or options.any_code)
        self.queue, self.ready, self.retried = deque(), threading.Condition(), 0
        self.known: OrderedDict[tuple[str, str | None], Verdict] = OrderedDict()
        if cluster:
            self.device, self.seats = self._on_cluster(cluster, device, gpus, workers, seed)
        else:
            self.device, self.seats = self._here(device, gpus, workers, seed)
        if self.device == "cpu" and self.options.baseline != "eager":
            raise GymError(
                f"The baseline {self.options.baseline} needs a GPU: what Inductor makes has no simulated time."
            )
        for seat in self.seats:
            seat.start()

    def _here(self, device: str | None, gpus: Sequence[int] | None, workers: int | None, seed: int):
        visible = torch.cuda.device_count()
        device = device or ("cuda" if visible else "cpu")
        if device == "cuda" and not visible:
            raise GymError("No GPU is visible here; use device cpu (Triton's interpreter, simulated times).")
        chosen = list(range(visible)) if gpus is None else list(dict.fromkeys(gpus))
        if device == "cpu" and gpus:
            raise GymError("GPUs are chosen for device cuda; leave them out with device cpu.")
        if device == "cuda" and (not chosen or not set(chosen) <= set(range(visible))):
            raise GymError(
                f"GPUs {', '.join(map(str, chosen)) or 'none'} were asked for; there are 0 to {visible - 1}."
            )
        cores = os.cpu_count() or 1
        seats = len(chosen) if device == "cuda" else 1
        workers = workers or (max(2, min(20, cores * 5 // 4 // seats)) if device == "cuda" else max(1, cores))
        key = hashlib.sha256(f"gym {seed}".encode()).digest()
        return device, [
            _Seat(self, i, (device, key, self.options, workers)) for i in (chosen if device == "cuda" else [None])
        ]

    def _on_cluster(self, address: str, device: str | None, gpus: Sequence[int] | None, workers: int | None, seed: int):
        if gpus is not None:
            raise GymError("GPUs are chosen on this machine only; leave them out with a cluster.")
        try:
            ray = ray_cluster.connect(address)
            device, found = ray_cluster.places(ray, device, workers)
        except ray_cluster.ClusterError as error:
            raise GymError(str(error)) from None
        return device, [ray_cluster.RaySeat(self, ray, needs, (device, n, seed, self.options)) for needs, n in found]

    def evaluate(self, jobs: Sequence[Job], progress: bool = False) -> list[Verdict]:
        """The verdicts of `jobs`, in their order. Raises GymError when no referee can be started."""
        verdicts: list[Verdict | None] = [None] * len(jobs)
        for index, verdict in tqdm(
            self.as_completed(jobs), total=len(jobs), desc="judging", unit="kernel", disable=not progress, leave=False
        ):
            verdicts[index] = verdict
        return verdicts

    def as_completed(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Verdict]]:
        """(index, verdict) as they come; what this Gym has judged before is not judged again."""
        same: dict[tuple[str, str | None], list[int]] = {}
        for i, job in enumerate(jobs):
            same.setdefault((job.task.key, job.code), []).append(i)
        with self.ready:
            known = {key: self.known[key] for key in same if key in self.known}
        for key, verdict in known.items():
            for index in same.pop(key):
                yield index, verdict
        done, rounds = deque(), Counter()
        with self.ready:
            turns = []  # the first kernel of every task, then the second..: the references are timed side by side
            for (task, _), indices in same.items():
                turns.append((rounds[task], indices))
                rounds[task] += 1
            for _, indices in sorted(turns, key=lambda turn: turn[0]):
                self.queue.append(_Ticket(jobs[indices[0]], indices, done))
            self.ready.notify_all()
        for _ in range(len(same)):
            with self.ready:
                while not done:
                    if all(seat.broken for seat in self.seats):
                        self.queue.clear()
                        raise GymError(f"No referee could be started: {self.seats[0].broken}")
                    self.ready.wait(1.0)
                ticket, verdict = done.popleft()
            if verdict.status != "gym_error":
                with self.ready:
                    self.known[(ticket.job.task.key, ticket.job.code)] = verdict
                    if len(self.known) > REMEMBERED:
                        self.known.popitem(last=False)
            for index in ticket.indices:
                yield index, verdict

    def again(self, ticket: "_Ticket", reason: str, lost: bool = True):
        """Back into the queue with a job in flight; or, if what judged it was lost for the second time, gym_error. Under `ready`."""
        ticket.tries += lost
        if ticket.tries < 2:
            self.retried += 1
            self.queue.appendleft(ticket)
        else:
            ticket.done.append((ticket, Verdict(message=f"the referee died while judging this kernel: {reason}")))

    def close(self):
        for seat in self.seats:
            seat.stopped = True
        for seat in self.seats:
            seat.stop()
        if self.retried:
            print(f"gym: {self.retried} jobs were judged again: a referee or its node was lost", file=sys.stderr)

    def __enter__(self) -> "Gym":
        return self

    def __exit__(self, *_):
        self.close()


@dataclass
class _Ticket:
    job: Job
    indices: list[int]
    done: deque
    tries: int = 0


class _Seat(threading.Thread):
    """Drives one referee process: keeps `workers` jobs in flight there, restarts it when it dies."""

    def __init__(self, gym: Gym, gpu: int | None, setup: tuple):
        super().__init__(daemon=True)
        self.gym, self.gpu, self.setup, self.broken, self.stopped, self.process = gym, gpu, setup, None, False, None
        self.folder = None

    def _start_referee(self) -> Connection:
        ours, theirs = socket.socketpair()
        env = dict(os.environ)
        if self.gpu is not None:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            env["CUDA_VISIBLE_DEVICES"] = visible.split(",")[self.gpu] if visible else str(self.gpu)
        self.folder = env["TMPDIR"] = tempfile.mkdtemp(prefix="drkernel-")  # where the referee makes its own
        root = str(Path(__file__).resolve().parent)
        command = [sys.executable, "-c", BOOT, root, str(theirs.fileno()), self.setup[0]]
        self.process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=env, stdin=subprocess.DEVNULL, start_new_session=True
        )
        theirs.close()
        connection = Connection(ours.detach())
        connection.send(self.setup)
        word, text = connection.recv()
        if word != "ready":
            raise GymError(text)
        return connection

    def run(self):
        failures = 0
        while not self.stopped and failures < 3:
            flying: dict[int, _Ticket] = {}
            try:
                connection = self._start_referee()
                self.broken = None
                self._drive(connection, flying)
            except (EOFError, OSError, GymError, pickle.UnpicklingError) as error:
                # a job is tried twice at most; a referee that cannot start, three times
                failures = 0 if flying else failures + 1
                self._again(flying, str(error) or "the referee died")
            finally:
                self._bury()
        self.broken = self.broken or "stopped"

    def _bury(self):
        """Ends what is left of a referee, and removes its folder: a killed one cannot, and its contestants die a moment after it."""
        if self.process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5 if self.stopped else 0)
            self.process.kill()
            self.process.wait()
        for _ in range(50):
            if not self.folder or not os.path.exists(self.folder):
                return
            shutil.rmtree(self.folder, ignore_errors=True)
            time.sleep(0.02)

    def _again(self, flying: dict[int, _Ticket], reason: str):
        """What was in flight in a referee that died is judged once more, then given up as gym_error."""
        if self.stopped:
            return
        self.process.kill()
        with self.gym.ready:
            for ticket in flying.values():
                self.gym.again(ticket, reason)
            if not flying:
                self.broken = reason
            self.gym.ready.notify_all()

    def _drive(self, connection: Connection, flying: dict[int, _Ticket]):
        number, workers = 0, self.setup[-1]
        while not self.stopped:
            with self.gym.ready:
                if not flying:
                    self.gym.ready.wait_for(lambda: self.gym.queue or self.stopped)
                while self.gym.queue and len(flying) < workers and not self.stopped:
                    ticket = self.gym.queue.popleft()
                    number += 1
                    flying[number] = ticket
                    connection.send((number, ticket.job.task, ticket.job.code))
            if flying and connection.poll(0.05):
                which, verdict = connection.recv()
                ticket = flying.pop(which)
                with self.gym.ready:
                    ticket.done.append((ticket, verdict))
                    self.gym.ready.notify_all()
        connection.close()

    def stop(self):
        self.stopped = True
        with self.gym.ready:
            self.gym.ready.notify_all()
        self.join(10)
        if self.process:
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()


@dataclass
class Args:
    """Judge one kernel."""

    task: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TASK")]
    """The task: level1/3, toy/test/17, or a file in KernelBench's format."""
    kernel: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="KERNEL")]
    """A file that defines ModelNew, a folder of such files, or the word `reference`: the task's own model (use with --any-code)."""
    json: bool = False
    """Print the verdict as JSON."""
    out: Path | None = None
    """With a folder: where the verdicts go, one JSON line each; those that are there already are not judged again. Default: verdicts.jsonl in it."""
    any_code: bool = False
    """Judge code without a Triton kernel of its own too (tasks against themselves, torch.compile)."""
    device: Annotated[str | None, tyro.conf.arg(metavar="cuda|cpu")] = None
    """Where kernels run; by default the GPU if there is one, else Triton's interpreter with simulated times."""
    gpus: tuple[int, ...] | None = None
    """Which of the visible GPUs judge (a folder is spread over them), such as --gpus 0 2; by default all."""
    cluster: Annotated[str | None, tyro.conf.arg(metavar="auto|ray://HOST:PORT")] = None
    """Judge on the GPUs of a Ray cluster: `auto` for the one that this machine is a part of. Name its device with --device."""
    seed: int | None = None
    """Fixes the random inputs; by default they are new in every run."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """fp32: the task as it is written. bf16, fp16: its weights and float inputs are cast, on both sides."""
    tf32: bool = False
    """TF32 on, on both sides."""
    baseline: Literal["eager", "compile", "max-autotune"] = "eager"
    """What the kernel is compared with: the task as it is, through torch.compile, or through its max-autotune (both on a GPU only)."""
    tolerance: float | None = None
    """Relative tolerance instead of 1e-4 (fp32) or 1e-2 (fp16, bf16)."""


def judge_folder(task: Task, folder: Path, out: Path, gym: Gym) -> dict[str, Verdict]:
    """file name -> verdict of the kernels in `folder`, fastest first. Each is appended to `out` as it comes: an interrupted run goes on."""
    texts = {p.name: p.read_text(encoding="utf-8", errors="replace") for p in sorted(folder.glob("*.py"))}
    marks = {
        name: hashlib.sha256(f"{task.key} {gym.options} {text}".encode()).hexdigest()[:16]
        for name, text in texts.items()
    }
    found = {}
    if out.exists():
        whole = out.read_text().rpartition("\n")[0]  # what comes after it was cut off in mid-line
        out.write_text(whole + "\n" * bool(whole))
        lines = [json.loads(line) for line in whole.splitlines()]
        found = {x["file"]: Verdict.from_json(x["verdict"]) for x in lines if marks.get(x["file"]) == x["mark"]}
    left = [name for name in texts if name not in found]
    with open(out, "a") as file:
        results = gym.as_completed([Job(task, texts[name]) for name in left])
        for index, verdict in tqdm(results, total=len(left), desc="judging", unit="kernel", disable=not left):
            name = left[index]
            found[name] = verdict
            file.write(json.dumps({"file": name, "mark": marks[name], "verdict": verdict.to_json()}) + "\n")
            file.flush()
    return dict(sorted(found.items(), key=lambda pair: (-pair[1].speedup, pair[1].status, pair[0])))


def main(args: Args) -> int:
    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        tasks = load_tasks(args.task, device=device)
        if len(tasks) != 1:
            raise TaskError(f"{args.task} names {len(tasks)} tasks; name one, such as {tasks[0].name}.")
        path = Path(args.kernel)
        options = Options(
            tolerance=args.tolerance,
            any_code=args.any_code,
            precision=args.precision,
            tf32=args.tf32,
            baseline=args.baseline,
            times=str(times.home()),
        )
        if args.kernel != "reference" and path.is_dir():
            if not any(path.glob("*.py")):
                raise TaskError(
                    f"The folder {args.kernel} holds no .py files; give one with files that define class ModelNew."
                )
            with Gym(device, gpus=args.gpus, seed=args.seed, options=options, cluster=args.cluster) as gym:
                found = judge_folder(tasks[0], path, args.out or path / "verdicts.jsonl", gym)
            print(json.dumps({n: v.to_json() for n, v in found.items()}, indent=2) if args.json else overview(found))
            return 0 if all(v.status != "gym_error" for v in found.values()) else 1
        if args.kernel != "reference" and not path.is_file():
            raise TaskError(f"There is no file {args.kernel}; give a file that defines class ModelNew.")
        code = (
            reference_code(tasks[0])
            if args.kernel == "reference"
            else path.read_text(encoding="utf-8", errors="replace")
        )
        with Gym(device, gpus=args.gpus, workers=1, seed=args.seed, options=options, cluster=args.cluster) as gym:
            verdict = gym.evaluate([Job(tasks[0], code)])[0]
    except (TaskError, GymError) as error:
        print(f"gym.py: {error}", file=sys.stderr)
        return 2
    print(json.dumps(verdict.to_json(), indent=2) if args.json else report(verdict))
    return 0 if verdict.correct else 1


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["doctor"]:
            from doctor import examine

            sys.exit(examine(*sys.argv[2:3]))
        sys.exit(main(tyro.cli(Args, description=__doc__)))
    except KeyboardInterrupt:
        sys.exit("\ngym.py: interrupted")
