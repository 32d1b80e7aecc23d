"""The performance figures of the README, one sub-command each.

python bench.py toy                    evaluations per second on toy tasks, and where each second goes
"""

import random
import statistics
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


def main():
    tyro.extras.subcommand_cli_from_dict({"toy": Toy}, description=__doc__).run()


if __name__ == "__main__":
    sys.exit(main())
