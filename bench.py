"""The performance figures of the README, one sub-command each.

    python bench.py toy                    evaluations per second on toy tasks, and where each second goes
    python bench.py contexts               CUDA contexts per second, which bound the evaluations per second on a GPU

Speed is watched here and nowhere in the tests.
"""

import os
import random
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

import tyro

from gym import Gym, Job
from kernelbench import toy


@dataclass
class Toy:
    """Judge toy solutions of the four qualities, as a training batch does."""

    tasks: int = 16
    """toy tasks; each gives one broken, lazy, half-fused and fused solution"""
    workers: int | None = None
    """contestants at a time per device; default: the gym's own"""
    device: str | None = None
    """cuda or cpu; default: the GPU if there is one"""
    seed: int = 0

    def run(self):
        rng = random.Random(self.seed)
        with Gym(self.device, workers=self.workers, seed=self.seed) as gym:
            toys = [toy.make("test", self.seed, i, gym.device) for i in range(self.tasks)]
            jobs = [(quality, Job(t.task, t.solution(quality, rng))) for t in toys for quality in toy.QUALITIES]
            gym.evaluate([jobs[-1][1]])  # the referee is up and warm
            begin = time.perf_counter()
            verdicts = gym.evaluate([job for _, job in jobs], progress=True)
            seconds = time.perf_counter() - begin
            print(
                f"{len(jobs)} evaluations in {seconds:.1f} s: {len(jobs) / seconds:.2f} per second on {verdicts[0].device}"
            )
        for quality in toy.QUALITIES:
            mine = [v for (q, _), v in zip(jobs, verdicts) if q == quality]
            phases = {name: statistics.mean(v.seconds.get(name, 0.0) for v in mine) for v in mine for name in v.seconds}
            speed = statistics.mean(v.speedup for v in mine)
            spent = ", ".join(f"{name} {s:.2f}" for name, s in phases.items())
            print(
                f"{quality:7} correct {sum(v.correct for v in mine)}/{len(mine)}, speed-up {speed:.2f}; mean seconds: {spent}"
            )


CONTEXTS = """
import os, sys, time, torch
parallel, left, alive, begin = int(sys.argv[1]), int(sys.argv[2]), 0, time.perf_counter()
while left or alive:
    while left and alive < parallel:
        if os.fork() == 0:
            torch.zeros(1, device="cuda").item()
            os._exit(0)
        left, alive = left - 1, alive + 1
    alive -= 1
    if os.wait()[1]:
        sys.exit("no CUDA context could be made")
print(int(sys.argv[2]) / (time.perf_counter() - begin))
"""


@dataclass
class Contexts:
    """Make and end CUDA contexts in forks of one process, with the driver's default of 8 hardware queues each and with the gym's 1."""

    parallel: int = 16
    """processes at a time"""
    total: int = 32
    """contexts made"""

    def run(self):
        for queues in ("8", "1"):
            env = os.environ | {"CUDA_DEVICE_MAX_CONNECTIONS": queues}
            command = [sys.executable, "-c", CONTEXTS, str(self.parallel), str(self.total)]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            if done.returncode or not done.stdout:
                sys.exit(f"bench.py: no contexts here: {done.stderr.strip().splitlines()[-1] if done.stderr else '?'}")
            print(f"{queues} hardware queues: {float(done.stdout):.2f} contexts per second, {self.parallel} at a time")


def main():
    tyro.extras.subcommand_cli_from_dict({"toy": Toy, "contexts": Contexts}, description=__doc__).run()


if __name__ == "__main__":
    sys.exit(main())
