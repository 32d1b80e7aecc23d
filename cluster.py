"""The gym on a Ray cluster: one actor per GPU, or per node of a cluster without any; each runs a gym of its own beside its device.

Assumed: this repository lies at the same path on every node, and its requirements and this version of Ray are installed there. GPUs that
train are kept from Ray by `CUDA_VISIBLE_DEVICES=.. ray start`. Where several processes train (torchrun), each takes its share of the rest.

An actor that is lost, with its node or alone, is replaced wherever Ray finds room; what it was judging goes back into the queue, once,
and who is free takes it. (Ray's own restarts would leave open whether an actor comes back.)
"""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

from kernelbench import Task
from kernelbench.judge import Options, Verdict

ROOT = str(Path(__file__).resolve().parent)
PATIENCE = 180.0  # seconds until a seat whose actor Ray cannot place, or that does not come up, counts as broken
CLOSING = 15.0  # seconds that an actor has to end its referee


class ClusterError(RuntimeError):
    """The cluster cannot be used; the text says what to do."""


class Judge:
    """The actor. `judge` is called by many threads at once."""

    def __init__(self, device: str, workers: int, seed: int, options: Options):
        from gym import Gym, Job

        self.job, self.gym = Job, Gym(device, workers=workers, seed=seed, options=options)

    def here(self):
        """Answers."""

    def judge(self, task: Task, code: str | None) -> Verdict:
        return self.gym.evaluate([self.job(task, code)])[0]

    def close(self):
        self.gym.close()


def connect(address: str):
    """Ray, connected. Raises ClusterError."""
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")  # else, connection lost, it starts a cluster of this machine
    try:
        import ray
    except ImportError:
        raise ClusterError("Ray is not installed: pip install ray==2.60.0, or leave --cluster out.") from None
    if not ray.is_initialized():
        handler = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(address, logging_level="error", log_to_driver=False)
        except (OSError, RuntimeError, ValueError, ImportError) as error:  # without grpc there is no ray://
            reason = str(error).strip().partition("\n")[0][:200]
            raise ClusterError(f"No Ray cluster answers at {address} (`ray status` shows one): {reason}") from None
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)  # Ray sets its own
    return ray


def places(ray, device: str | None, workers: int | None) -> tuple[str, list[tuple[dict, int]]]:
    """The device, and for every actor to start what it asks of Ray and how many contestants it has at a time."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = int(sum(node.get("GPU", 0) for node in nodes))
    cpus = [int(node["CPU"]) for node in nodes if node.get("CPU", 0) >= 1]
    if device == "cuda" and not gpus:
        raise ClusterError("The cluster has no GPU; use device cpu (Triton's interpreter, simulated times).")
    device = device or ("cuda" if gpus else "cpu")
    if device == "cuda":
        workers = workers or max(2, min(20, sum(cpus) * 5 // 4 // gpus))
        found = [({"num_gpus": 1, "num_cpus": 0}, workers)] * gpus
    else:  # one per node, which asks for a CPU per contestant
        found = [({"num_cpus": min(workers or n, n), "scheduling_strategy": "SPREAD"}, workers or n) for n in cpus]
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    if len(found) < world:
        raise ClusterError(f"The cluster has room for {len(found)} referees, and {world} are needed: add nodes.")
    return device, found[rank::world]


class RaySeat(threading.Thread):
    """Keeps `workers` jobs in flight at one actor, replaces it when it is lost: what gym._Seat is to a process of this machine."""

    def __init__(self, gym, ray, needs: dict, setup: tuple):
        super().__init__(daemon=True)
        self.gym, self.ray, self.needs, self.setup = gym, ray, needs, setup
        self.broken, self.stopped, self.actor = None, False, None

    def run(self):
        failures = 0
        while not self.stopped and failures < 3:
            flying, up = {}, False
            try:
                up = self._start_actor()
                self._drive(flying)
            except (Exception, SystemExit) as error:  # noqa: BLE001 Ray has many, and every job must get its verdict
                lost = not isinstance(error, self.ray.exceptions.RayTaskError)  # else no referee starts there
                failures = 0 if lost else failures + 1
                reason = str(getattr(error, "cause", None) or error).strip().rpartition("\n")[2] or type(error).__name__
                with self.gym.ready:
                    for ticket in () if self.stopped else flying.values():
                        self.gym.again(ticket, reason, lost)
                    if not flying or not lost:
                        self.broken = reason
                    self.gym.ready.notify_all()
                    if not up:  # Ray may not know yet that a node is gone, and choose it again
                        self.gym.ready.wait_for(lambda: self.stopped, timeout=1.0)
            finally:
                with contextlib.suppress(Exception, SystemExit):
                    if up and self.stopped:
                        self.ray.wait([self.actor.close.remote()], timeout=CLOSING)
                    self.ray.kill(self.actor)
        self.broken = self.broken or "stopped"

    def _start_actor(self) -> bool:
        """True once it answers; False where the gym was closed before."""
        began, path = time.monotonic(), {"env_vars": {"PYTHONPATH": f"{ROOT}:${{PYTHONPATH}}"}}
        options = {"max_concurrency": self.setup[1] + 1, "max_restarts": 0, "max_task_retries": 0, "runtime_env": path}
        self.actor = self.ray.remote(Judge).options(**options, **self.needs).remote(*self.setup)
        answer = self.actor.here.remote()
        while not self.stopped and not self.ray.wait([answer], timeout=0.2)[0]:
            if time.monotonic() - began > PATIENCE:
                self.broken = f"Ray started no actor within {PATIENCE:.0f} s; `ray status` says what it lacks"
        if not self.stopped:
            self.ray.get(answer)
            self.broken = None
        return not self.stopped

    def _drive(self, flying: dict):
        queue, ready = self.gym.queue, self.gym.ready
        while not self.stopped:
            with ready:
                if not flying:
                    ready.wait_for(lambda: queue or self.stopped)
                while queue and len(flying) < self.setup[1] and not self.stopped:
                    flying[self.actor.judge.remote(queue[0].job.task, queue[0].job.code)] = queue[0]
                    queue.popleft()
            for answer in self.ray.wait(list(flying), timeout=0.05)[0] if flying else ():
                verdict = self.ray.get(answer)
                with ready:
                    ticket = flying.pop(answer)
                    ticket.done.append((ticket, verdict))
                    ready.notify_all()

    def stop(self):
        self.stopped = True
        with self.gym.ready:
            self.gym.ready.notify_all()
        self.join(CLOSING + 5)
