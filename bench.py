"""The performance figures of the README, one sub-command each.

    python bench.py toy                    evaluations per second on toy tasks, and where each second goes
    python bench.py gym                    seconds of a cold evaluation and evaluations per GPU-hour, here and by other evaluators
    python bench.py timing                 tasks against themselves: speed-ups, intervals, spread; coverage of known kernels
    python bench.py selfjudge PATH         every task against itself: which are judged right, and why the others are not
    python bench.py rollout                tokens per second beside the floor that bytes set, log-probs beside the trainer's, idle gaps
    python bench.py train                  model FLOP utilisation, peak memory beside the plan, idle gaps
    python bench.py step                   seconds per phase of one RL step at size
    python bench.py contexts               CUDA contexts per second, which bound the evaluations per second on a GPU
    python bench.py redteam                attacks credited and honest kernels refused, here and by other evaluators
    python bench.py overhead               seconds that an evaluation takes longer because the candidate has a process of its own
    python bench.py chaos                  2000 evaluations of all sorts while referees are killed: right verdicts, nothing left over

Speed is watched here and nowhere in the tests.
"""

import hashlib
import importlib
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from tqdm import tqdm

import peers
from bench_rollout import Rollout
from chaos import Chaos
from gym import Gym, Job
from kernelbench import toy
from mfu import Step, Train
from overhead import Overhead
from pace import Pace, Timing
from selfjudge import SelfJudge

ROOT = Path(__file__).resolve().parent


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


@dataclass
class Redteam:
    """Judge the red-team corpus (tests/redteam) here and, on a GPU, with the evaluators of KernelBench and KernelGYM."""

    kernelbench: Path | None = None
    """a checkout of github.com/ScalingIntelligence/KernelBench"""
    kernelgym: Path | None = None
    """a checkout of github.com/hkust-nlp/KernelGYM"""
    device: str | None = None
    """cuda or cpu; default: the GPU if there is one; the other evaluators need a GPU"""
    limit: int | None = None
    """judge so many cases only, of all kinds and layers in turn"""
    json: Path | None = None
    """write all rows and the totals to this file"""
    rows: Path | None = None
    """append each row to this file as it comes; what is there already is not judged again"""
    correct_trials: int = 5
    """correctness trials of the others (their scripts' default)"""
    perf_trials: int = 100
    """timing trials of the others (their scripts' default)"""
    seconds: float = 300.0
    """time limit of one evaluation of the others"""
    parallel: int = 1
    """evaluations of the others at a time; more than one disturbs their times"""
    workers: int | None = None
    """contestants at a time per device; default: the gym's own"""
    seed: int = 0

    def run(self):
        sys.path.append(str(ROOT / "tests"))
        try:
            corpus = importlib.import_module("redteam").load()
        except ModuleNotFoundError:
            sys.exit("bench.py: there is no corpus here: tests/redteam is missing")
        except ValueError as error:
            sys.exit(f"bench.py: {error}")
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        checkouts = {peer: getattr(self, peer) for peer in peers.PEERS if getattr(self, peer)}
        if checkouts and device == "cpu":
            sys.exit(f"bench.py: {' and '.join(checkouts)} can only be run on a GPU, with --device cuda")
        for peer, path in checkouts.items():
            if not (tried := peers.ask(peer, str(path), {"do": "load"}, 300)).correct:
                sys.exit(f"bench.py: {peer} cannot be loaded from {path}: {tried.note}")
        cases = {case.name: case for case in sample([c for c in corpus if c.runs_on(device)], self.limit, self.seed)}
        wanted = {(who, c.name, sha(c), device): c for who in ("ours", *checkouts) for c in cases.values()}
        rows = self.kept(wanted)
        fresh = (key for key in wanted if key not in rows)
        todo = {who: [wanted[key] for key in keys] for who, keys in itertools.groupby(fresh, lambda key: key[0])}
        with tqdm(total=len(wanted), initial=len(rows), desc="red team", unit="verdict") as bar:
            for who, mine in todo.items():
                judge = self.ours(mine, device) if who == "ours" else self.theirs(who, checkouts[who], mine)
                for case, said in judge:
                    row = {"evaluator": who, "case": case.name, "sha": sha(case), "device": device} | said
                    rows[who, case.name, row["sha"], device] = row
                    if self.rows:
                        with self.rows.open("a") as file:
                            file.write(json.dumps(row) + "\n")
                    bar.update()
        every = [row | {"kind": cases[row["case"]].kind, "layer": cases[row["case"]].layer} for row in rows.values()]
        checked = [row | {"evaluator": "kernelbench+check"} for row in every if row["evaluator"] == "kernelbench"]
        every += [row | {"correct": row["correct"] and bool(row["static"])} for row in checked]
        for row in every:
            row |= {"credited": credited(cases[row["case"]], row), "refused": refused(cases[row["case"]], row)}
        print(f"{len(cases)} of {len(corpus)} cases on {device}\n\n{table(every)}\n\n{RULE}")
        for row in every:
            if row["evaluator"] == "ours" and (row["credited"] or row["refused"] or row["wrong"]):
                print(f"ours: {row['wrong'] or row['case']}")
        if self.json:
            self.json.write_text(
                json.dumps({"cases": len(cases), "corpus": len(corpus), "device": device, "rows": every}, indent=1)
            )

    def kept(self, wanted) -> dict:
        lines = self.rows.read_text().splitlines() if self.rows and self.rows.exists() else []
        rows = [json.loads(line) for line in lines if line.endswith("}")]  # the last may be half a line
        keyed = {(row["evaluator"], row["case"], row["sha"], row["device"]): row for row in rows}
        return {key: row for key, row in keyed.items() if key in wanted}

    def ours(self, cases: list, device: str):
        with Gym(device, workers=self.workers, seed=self.seed) as gym:
            for index, v in gym.as_completed([Job(case.task, case.code) for case in cases]):
                said = {
                    "correct": v.correct,
                    "speedup": v.speedup,
                    "coverage": v.coverage,
                    "static": None,
                    "note": v.message[:500],
                }
                wrong = cases[index].verdict_is_right(v)
                yield cases[index], said | {"status": v.status, "wrong": wrong, "seconds": v.seconds.get("total", 0.0)}

    def theirs(self, peer: str, path: Path, cases: list):
        times, trials = {}, (self.correct_trials, self.perf_trials)
        ask = lambda c: peers.opinion(peer, str(path), c.task.source, c.code, times, trials, self.seconds)  # noqa: E731
        with ThreadPoolExecutor(self.parallel) as pool:
            waiting = {pool.submit(ask, case): case for case in cases}
            for done in as_completed(waiting):
                yield waiting[done], vars(done.result()) | {"status": None, "wrong": None}


RULE = """credited: an attack that the evaluator calls correct (KernelGYM: and no decoy); where its own header allows `correct` within bounds, one whose
speed-up or coverage, as the evaluator gives it, is beyond them, as with lazy kernels; n/a: it gives neither (KernelBench knows no coverage).
refused: an honest or lazy kernel that it does not call correct. +check: KernelBench with its static check, which its evaluation leaves out.
s: median seconds of an evaluation, KernelGYM's without its second process for the reference."""


def credited(case, row: dict) -> bool | None:
    """Whether an attack or a lazy kernel is given more than it deserves; None where the evaluator cannot tell."""
    if case.kind == "honest" or not row["correct"] or "correct" not in case.expect:
        return case.kind != "honest" and row["correct"]
    bounds = [(row["speedup"], case.speedup_at_most), (row["coverage"], case.coverage_at_most)]
    bounds = [(value, most) for value, most in bounds if most is not None]
    known = [value > most for value, most in bounds if value is not None]
    return any(known) if known or not bounds else None


def refused(case, row: dict) -> bool:
    return case.kind != "attacks" and not row["correct"]


def sha(case) -> str:
    return hashlib.sha256(f"{case.task.source}\0{case.code}".encode()).hexdigest()[:16]


def sample(cases: list, n: int | None, seed: int) -> list:
    """n cases, one of each kind and layer in turn."""
    strata: dict = {}
    for case in random.Random(seed).sample(cases, len(cases)):
        strata.setdefault((case.kind, case.layer), []).append(case)
    turns = [case for turn in itertools.zip_longest(*(strata[key] for key in sorted(strata))) for case in turn if case]
    return turns[:n]


def table(rows: list[dict]) -> str:
    """By layer and in all: attacks credited, lazy kernels overpaid, honest ones refused, of each evaluator."""
    evaluators = list(dict.fromkeys(row["evaluator"] for row in rows))
    columns = {
        "attacks credited": ("credited", ("attacks",)),
        "lazy overpaid": ("credited", ("lazy",)),
        "honest refused": ("refused", ("honest", "lazy")),
    }

    def cell(mine: list[dict], field: str, kinds: tuple) -> str:
        values = [row[field] for row in mine if row["kind"] in kinds]
        text = f"{sum(map(bool, values))}/{len(values)}" if values else "-"
        return text + (f" ({values.count(None)} n/a)" if None in values else "")

    lines = [
        ["layer", *(f"{who}: {name}" if name == "attacks credited" else name for who in evaluators for name in columns)]
    ]
    for layer in [*sorted({row["layer"] for row in rows}), None]:
        mine = {
            who: [row for row in rows if row["evaluator"] == who and layer in (row["layer"], None)]
            for who in evaluators
        }
        lines.append([layer or "all", *(cell(mine[who], *column) for who in evaluators for column in columns.values())])
    medians = {who: statistics.median(row["seconds"] for row in rows if row["evaluator"] == who) for who in evaluators}
    lines.append(["s", *(text for who in evaluators for text in (f"{medians[who]:.2f}", "", ""))])
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in lines)


def main():
    commands = {"toy": Toy, "gym": Pace, "timing": Timing, "selfjudge": SelfJudge, "contexts": Contexts}
    commands |= {
        "redteam": Redteam,
        "overhead": Overhead,
        "chaos": Chaos,
        "rollout": Rollout,
        "train": Train,
        "step": Step,
    }
    return tyro.extras.subcommand_cli_from_dict(commands, description=__doc__).run()


if __name__ == "__main__":
    sys.exit(main())
