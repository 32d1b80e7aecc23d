"""How good is a policy at writing kernels: Fast@p per turn and best of turns.

    python eval.py --model runs/tiny/checkpoints/step_000040 --tasks toy/test:256
    python eval.py --model qwen-8b --tasks level1 level2 --out eval.jsonl      (again: continues where it stopped)
    python eval.py --model reference --tasks level1                            (A/A: each task against itself)

Fast@p is the mean over tasks and samples of `correct and speed-up >= p` at a turn; KernelBench's own fast_p, with a
strict `>`, stands beside it. "best" takes each sample's best turn by correct x speed-up. Standard errors treat tasks
as the independent draws. Turns lost to a fault of the gym itself count nowhere; their number is printed. The reward
of training is not used here.

Not covered yet: test-time scaling, API models, plots.
"""

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import tyro
from tqdm import tqdm

from gym import Gym, GymError, Job, reference_code
from kernelbench import Task, TaskError, load_tasks
from model import PRESETS, ModelError, load_policy, preset_of
from rollout import Trajectory, rollout

THRESHOLDS = (1.0, 1.2, 1.5, 2.0)


@dataclass
class Args:
    model: str = "tiny"
    """alias (tiny, qwen-0.6b .. qwen-14b), hub id, checkpoint folder, or "reference": each task's own source"""
    tasks: tuple[str, ...] | None = None
    """what to solve: level1, level2/12, a file or folder, toy/test:256, ...; default: the preset's held-out tasks"""
    out: Path | None = None
    """file of JSON lines, a header and one line per turn; the same command again continues it"""
    samples: int | None = None
    """samples per task"""
    turns: int | None = None
    """turns per sample"""
    temperature: float | None = None
    """sampling temperature"""
    top_p: float | None = None
    """nucleus sampling"""
    style: Literal["full", "brief"] | None = None
    """prompt and feedback: full or brief"""
    max_prompt: int | None = None
    """tokens of a prompt"""
    max_response: int | None = None
    """sampled tokens per turn"""
    context: int | None = None
    """tokens of a whole rollout"""
    chunk: int = 16
    """tasks per step of the progress; a finished chunk is never done again"""
    rollout_batch: int | None = None
    """sequences generated at once"""
    seed: int = 0
    """of sampling and of the gym's inputs; the tasks are the same for every seed"""
    device: Literal["cuda", "cpu"] | None = None
    """cuda or cpu; default: a GPU if there is one"""
    dtype: Literal["bf16", "fp32"] | None = None
    """bf16 or fp32"""
    workers: int | None = None
    """evaluations at once on a machine without a GPU; default: by the number of cores"""


class EvalError(ValueError):
    """Something the user can mend; its text is all that is printed."""


# --- Turns -> records ------------------------------------------------------------------------------------------------


def evaluate(model, tokenizer, tasks: Sequence[Task], gym: Gym, *, turns: int, **settings) -> list[dict]:
    """Rolls out every task (`settings`: those of rollout.rollout) and returns len(tasks) x samples x turns records, in that
    order; see `record`."""
    groups = rollout(model, tokenizer, tasks, gym, turns=turns, **settings)
    return [record(trajectory, turn) for group in groups for trajectory in group for turn in range(turns)]


def record(trajectory: Trajectory, turn: int) -> dict:
    """One turn as a line of the report. A turn that never happened (the gym failed before it) is not valid."""
    happened = trajectory.turns[turn] if turn < len(trajectory.turns) else None
    verdict = happened.verdict if happened else None
    return {
        "task": trajectory.task.name,
        "sample": trajectory.sample,
        "turn": turn + 1,
        "valid": verdict.status != "gym_error" if verdict else happened is not None,
        "status": verdict.status if verdict else ("out_of_context" if happened else "gym_error"),
        "correct": bool(verdict and verdict.correct),
        "speedup": verdict.speedup if verdict else 0.0,
        "coverage": verdict.coverage if verdict else 0.0,
        "hack": verdict.hack if verdict else None,
        "timing": verdict.timing if verdict else None,
        "reference_ms": verdict.reference_ms if verdict else None,
        "kernel_ms": verdict.kernel_ms if verdict else None,
        "message": verdict.message if verdict else "",
        "tokens": len(happened.ids) if happened else 0,
        "code": happened.code if happened else None,
    }


def judge_references(tasks: Sequence[Task], gym: Gym) -> list[dict]:
    """A/A: each task's own source as the candidate. The gym must have been started with any_code."""
    codes = [reference_code(task) for task in tasks]
    verdicts = gym.evaluate([Job(task, code) for task, code in zip(tasks, codes, strict=True)])
    return [
        {"task": task.name, "sample": 0, "turn": 1, "valid": v.status != "gym_error", "code": code, "tokens": 0}
        | {key: getattr(v, key) for key in ("status", "correct", "speedup", "coverage", "hack", "timing")}
        | {key: getattr(v, key) for key in ("reference_ms", "kernel_ms", "message")}
        for task, code, v in zip(tasks, codes, verdicts, strict=True)
    ]


# --- Records -> figures ----------------------------------------------------------------------------------------------


def summarise(records: Sequence[dict], turns: int) -> dict[str, list[tuple[float, float]]]:
    """Figures of the report: name -> (mean, standard error) for each turn and, last, for the best of the turns.

    correct, fast@p: correct and s >= p; fast_p (KernelBench): correct and s > p; hack; coverage, over the correct turns.
    """
    samples = len(records) // turns
    names = np.array([r["task"] for r in records[::turns]])  # (S,)
    valid, correct, hack = (
        np.array([f(r) for r in records], dtype=bool).reshape(samples, turns)  # (S, K)
        for f in (lambda r: r["valid"], lambda r: r["correct"], lambda r: r["hack"] is not None)
    )
    speedup, coverage = (
        np.array([r[key] for r in records], float).reshape(samples, turns) for key in ("speedup", "coverage")
    )
    correct &= valid
    best = np.where(correct, speedup, -1.0).argmax(axis=1)[:, None]  # (S, 1)

    def with_best(x: np.ndarray) -> np.ndarray:  # (S, K) -> (S, K + 1)
        return np.concatenate([x, np.take_along_axis(x, best, axis=1)], axis=1)

    counted = np.concatenate([valid, valid.any(axis=1, keepdims=True)], axis=1)
    c, s = with_best(correct), with_best(speedup)
    figures = {"correct": (c, counted)}
    figures |= {f"fast@{p:g}": (c & (s >= p), counted) for p in THRESHOLDS}
    figures |= {f"fast_{p:g}": (c & (s > p), counted) for p in THRESHOLDS}
    figures["hack"] = (np.concatenate([hack, hack.any(axis=1, keepdims=True)], axis=1), counted)
    figures["coverage"] = (with_best(coverage), c)
    return {
        name: [mean_and_error(x[:, k], on[:, k], names) for k in range(turns + 1)] for name, (x, on) in figures.items()
    }


def mean_and_error(x: np.ndarray, on: np.ndarray, cluster: np.ndarray) -> tuple[float, float]:
    """Mean of x[on] and its standard error, with clusters (tasks) as the independent draws.

        m = Σ x / n,    se² = J/(J-1) · Σ_j (Σ_{i in j} (x_i - m))² / n²        J clusters, n draws in all

    nan where nothing is on, and for the error of a single cluster.
    """
    x, cluster = x[on].astype(float), cluster[on]
    if len(x) == 0:
        return float("nan"), float("nan")
    mean = x.mean()
    _, index = np.unique(cluster, return_inverse=True)
    residuals = np.bincount(index, weights=x - mean)  # (J,)
    if len(residuals) == 1:
        return float(mean), float("nan")
    j = len(residuals)
    return float(mean), float(np.sqrt(j / (j - 1) * (residuals**2).sum()) / len(x))


def table(figures: dict[str, list[tuple[float, float]]], turns: int) -> str:
    """The protocol's table as text."""
    heads = [f"turn {k + 1}" for k in range(turns)] + [f"best of {turns}"]
    lines = [" " * 10 + "".join(f"{head:>16}" for head in heads)]
    for name, cells in figures.items():
        texts = ["-" if np.isnan(m) else f"{m:.3f}" + ("" if np.isnan(e) else f" ± {e:.3f}") for m, e in cells]
        lines.append(f"{name:<10}" + "".join(f"{text:>16}" for text in texts))
    return "\n".join(lines)


def headline(figures: dict[str, list[tuple[float, float]]], turns: int) -> dict[str, float | None]:
    """The figures by name for metrics: eval/correct (last turn), eval/turn1/..., eval/best/..., each with its ..._se."""
    places = {"eval/": turns - 1, "eval/turn1/": 0, "eval/best/": turns}
    return {
        place + name + suffix: None if np.isnan(cells[k][i]) else cells[k][i]
        for place, k in places.items()
        for name, cells in figures.items()
        for i, suffix in enumerate(("", "_se"))
    }


# --- The file of results -----------------------------------------------------------------------------------------------


def open_results(path: Path, header: dict, per_chunk: int, total: int) -> list[dict]:
    """Creates the file with its header, or reads back the whole chunks that an earlier run left, cutting off the rest.

    per_chunk and total count lines. Errors: EvalError for a broken line or another evaluation's file.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"header": header}) + "\n", encoding="utf-8")
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    parsed = []
    for number, line in enumerate(lines, 1):
        try:
            parsed.append(json.loads(line))
        except json.JSONDecodeError:
            if number < len(lines):
                raise EvalError(
                    f"{path}, line {number}, is not JSON: repair or delete that file, or choose another --out."
                ) from None
    if not parsed or parsed[0].get("header") != header:
        raise EvalError(
            f"{path} holds another evaluation (its first line says which): choose another --out or delete it."
        )
    found = len(parsed) - 1
    records = parsed[1 : 1 + (found if found == total else found // per_chunk * per_chunk)]
    whole = path.with_name(path.name + ".tmp")
    whole.write_text("".join(json.dumps(x) + "\n" for x in parsed[:1] + records), encoding="utf-8")
    whole.replace(path)
    return records


def resolve(args: Args, preset: dict) -> Args:
    """Fills the fields left at None from the model's preset, where `eval_x` goes before `x`."""
    left = [name for name, value in asdict(args).items() if value is None]
    found = {name: preset.get(f"eval_{name}", preset.get(name)) for name in left}
    return replace(args, **found)


def run(args: Args) -> list[dict]:
    """The command: loads, evaluates chunk by chunk, prints the table. Returns all records."""
    reference = args.model == "reference"
    preset = "paper" if reference else preset_of(args.model)
    args = resolve(args, PRESETS[preset])
    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cpu" and preset == "tiny":
        torch.set_num_threads(1)  # more collapse when the gym's processes share the cores
    samples, turns = (1, 1) if reference else (args.samples, args.turns)
    tasks = load_tasks(*args.tasks, device=device)  # the same for every seed
    header = {k: v for k, v in asdict(args).items() if k not in ("out", "workers")} | {"device": device}
    header = json.loads(json.dumps(header | {"keys": [task.key for task in tasks]}))
    per_task = samples * turns
    names = ("style", "max_prompt", "max_response", "context", "temperature", "top_p")
    settings = {name: getattr(args, name) for name in names} | {
        "batch": args.rollout_batch,
        "samples": samples,
        "turns": turns,
    }
    records = open_results(args.out, header, args.chunk * per_task, len(tasks) * per_task) if args.out else []
    if not reference:
        dtype = torch.bfloat16 if args.dtype == "bf16" and device == "cuda" else torch.float32
        model, tokenizer = load_policy(args.model, device, dtype=dtype)
    with Gym(device=device, workers=args.workers, seed=args.seed, any_code=reference) as gym:
        starts = range(len(records) // per_task, len(tasks), args.chunk)
        for start in tqdm(starts, desc="eval", unit="chunk", disable=None):
            chunk = tasks[start : start + args.chunk]
            if reference:
                new = judge_references(chunk, gym)
            else:
                seed = random.Random(f"{args.seed}/{start}").getrandbits(48)
                new = evaluate(model, tokenizer, chunk, gym, seed=seed, **settings)
            records += new
            if args.out:
                with args.out.open("a", encoding="utf-8") as file:
                    file.write("".join(json.dumps(line) + "\n" for line in new))
    report(records, tasks, samples, turns)
    return records


def report(records: list[dict], tasks: list[Task], samples: int, turns: int) -> None:
    """Prints the table and what it rests on."""
    timing = sorted({r["timing"] for r in records if r["timing"]})
    lost = sum(not r["valid"] for r in records)
    print(f"\n{len(tasks)} tasks x {samples} samples x {turns} turns, times {' and '.join(timing) or 'not taken'}")
    print(table(summarise(records, turns), turns))
    if lost:
        print(f"{lost} of {len(records)} turns were lost to faults of the gym itself and count nowhere.")


def main() -> None:
    args = tyro.cli(Args, description=__doc__)
    try:
        run(args)
    except (EvalError, TaskError, ModelError, GymError) as error:
        sys.exit(f"eval.py: {error}")
    except OSError as error:
        sys.exit(
            f"eval.py: {error.filename or args.out}: {error.strerror}. Choose another --out or make room; nothing is lost."
        )


if __name__ == "__main__":
    main()
