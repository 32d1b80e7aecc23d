"""Reference times in KernelBench's baseline format.

    python baselines.py level1 level2 --out baseline_time_torch.json
    python baselines.py path/to/KernelBench --baseline compile --out results/timing/H200/baseline_time_torch_compile_inductor_default.json

Times come from the clock that judges kernels: every task is submitted as a solution of itself, which must be right. They are kept on disk
(kernelbench/times.py); a second run takes them from there, so that an interrupted one goes on. Layout: level -> file name -> mean, std, min,
max in ms, num_trials, hardware, device (and median, which KernelBench does not read). Departure: gradients are off, and precision is fp32
unless asked otherwise, as when kernels are judged.
"""

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro
from tqdm import tqdm

from gym import Gym, GymError, Job, reference_code
from kernelbench import Task, TaskError, load_tasks, times
from kernelbench.judge import Options


@dataclass
class Args:
    """Time the references of tasks."""

    tasks: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="TASKS")]
    """level1, level2/3, a file, a folder, a checkout of KernelBench, hf:OWNER/NAME ..."""
    out: Path = Path("baseline_time_torch.json")
    """where the figures go"""
    baseline: Literal["eager", "compile", "max-autotune"] = "eager"
    """the tasks as they are, through torch.compile, or through its max-autotune"""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    tf32: bool = False
    fresh: bool = False
    """measure what is on disk again"""
    device: Annotated[str | None, tyro.conf.arg(metavar="cuda|cpu")] = None
    """by default the GPU if there is one, else simulated times"""
    gpus: tuple[int, ...] | None = None
    """which of the visible GPUs, of one kind; by default all"""
    workers: int | None = None
    seed: int | None = None


def baseline_file(found: dict[str, dict], hardware: str, device: str) -> dict:
    """KernelBench's layout of {task's name: times.figures}."""
    levels: dict[str, dict] = {}
    for name, ms in found.items():
        level, _, stem = name.rpartition("/")
        levels.setdefault(level or "tasks", {})[f"{stem}.py"] = ms | {"hardware": hardware, "device": device}
    return levels


def main(args: Args) -> int:
    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    folder = times.home()
    options = Options(
        any_code=True, precision=args.precision, tf32=args.tf32, baseline=args.baseline, times=str(folder)
    )
    failed, speedups = {}, []
    try:
        tasks: list[Task] = load_tasks(*args.tasks, device=device)
        gpu = (args.gpus or (0,))[0]
        with Gym(device, gpus=args.gpus, workers=args.workers, seed=args.seed, options=options) as gym:
            hardware = torch.cuda.get_device_name(gpu) if device == "cuda" else f"simulated {options.simulate}"
            kept = {} if args.fresh else {t: times.load(folder, times.about(t, hardware, options)) for t in tasks}
            found = {task.name: kept[task] for task in tasks if kept.get(task)}
            left = [task for task in tasks if task.name not in found]
            verdicts = gym.as_completed([Job(task, reference_code(task)) for task in left])
            for index, verdict in tqdm(verdicts, total=len(left), desc="timing", unit="task", disable=not left):
                name = left[index].name
                if verdict.correct:
                    found[name] = verdict.reference_times
                    speedups.append(verdict.speedup)
                else:
                    failed[name] = f"{verdict.status}: {verdict.message.partition(chr(10))[0][:160]}"
                times.write(
                    args.out,
                    baseline_file(found, hardware, f"{device}:{gpu}" if device == "cuda" else device),
                    indent=4,
                )
            times.write(
                args.out, baseline_file(found, hardware, f"{device}:{gpu}" if device == "cuda" else device), indent=4
            )
    except (TaskError, GymError) as error:
        print(f"baselines.py: {error}", file=sys.stderr)
        return 2
    print(
        f"{len(found)} of {len(tasks)} tasks in {args.out}, {len(tasks) - len(left)} of them from {folder}; {hardware}"
    )
    if speedups:
        low, middle, high = min(speedups), statistics.median(speedups), max(speedups)
        print(
            f"the tasks against this baseline ({args.baseline}): speed-up {low:.3f} to {high:.3f}, median {middle:.3f}"
        )
    for name, text in failed.items():
        print(f"without a time: {name}: {text}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(tyro.cli(Args, description=__doc__)))
    except KeyboardInterrupt:
        sys.exit("\nbaselines.py: interrupted; what is measured is kept")
