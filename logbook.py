"""A training run on disk: metrics.jsonl, transcripts, the plot.

    OUT/metrics.jsonl           first line the header, then a line per step and one per evaluation (step 0: before training)
    OUT/checkpoints/step_N/     see checkpoint.py
    OUT/transcripts/step_N.txt  a few rollouts of the step as text
    OUT/plot.png                made at the end; anew with  python logbook.py OUT

`args` is train.py's Args.
"""

import json
import math
import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
import transformers
import triton
from torch import Tensor
from tqdm import tqdm

import rewards
from checkpoint import RunError, checkpoints
from kernelbench.judge import STATUSES
from processes import RANK, WORLD, from_rank_0, gathered
from rollout import Trajectory


def read_metrics(out: Path) -> list[dict]:
    """The lines of metrics.jsonl, header first; a last line cut short by a kill is left out."""
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1]]


def arguments_of(out: Path) -> dict:
    """The arguments of the run in `out`, from its header. Errors: RunError where there is nothing to resume."""
    if not (out / "metrics.jsonl").is_file():
        raise RunError(f"{out} holds no run (no metrics.jsonl): give the folder that a run printed as its first line.")
    if not checkpoints(out):
        raise RunError(f"{out} has no checkpoint yet: start that run again with its own command.")
    args = read_metrics(out)[0]["header"]["args"]
    paths = {name: args[name] and Path(args[name]) for name in ("out", "resume")}
    lists = {name: tuple(value) for name, value in args.items() if isinstance(value, list)}
    return args | paths | lists


def header(args, device: str) -> dict:
    git = ["git", "-C", str(Path(__file__).resolve().parent), "rev-parse", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False) if shutil.which("git") else None
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    return {
        "args": json.loads(json.dumps(asdict(args), default=str)),
        "commit": commit.stdout.strip() or None if commit else None,
        "versions": {"python": sys.version.split()[0]}
        | {m.__name__: m.__version__ for m in (torch, triton, transformers)},
        "device": name,
        "processes": WORLD,
    }


def open_run(args, device: str) -> tuple[Path, int, Path | None]:
    """Creates the run's folder, or cuts a resumed one back to its last whole checkpoint: (folder, step, checkpoint)."""
    if args.resume:
        out, folder = args.resume, from_rank_0(checkpoints(args.resume)[-1])
        state = json.loads((folder / "state.json").read_text())
        if state["model"] != args.model:
            raise RunError(
                f"{out} is a run of {state['model']}, not of {args.model}: leave --model out, or start a new run from its "
                f"weights with --model {folder}"
            )
        if RANK == 0:
            kept = [line for line in read_metrics(out) if line.get("step", -1) <= state["step"]]
            new = out / ".metrics.jsonl"
            new.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
            new.replace(out / "metrics.jsonl")
            (out / "stop").unlink(missing_ok=True)
        on_one_disk(out)
        return out, state["step"], folder
    name = Path(args.model).name if Path(args.model).exists() else args.model.replace("/", "-")
    out = from_rank_0(args.out or Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}")
    if from_rank_0(bool(checkpoints(out))):
        raise RunError(f"{out} already holds a run: continue it with --resume {out}, or choose another --out.")
    trouble = None
    if RANK == 0:
        try:
            (out / "checkpoints").mkdir(parents=True, exist_ok=True)
            for left_over in ("metrics.jsonl", "stop"):  # of a run that never came to a checkpoint
                (out / left_over).unlink(missing_ok=True)
            append(out, {"step": -1, "header": header(args, device)})
        except OSError as error:
            trouble = RunError(f"{out} cannot be written ({error.strerror}): choose another --out.")
    trouble = from_rank_0(trouble)
    if trouble:
        raise trouble
    on_one_disk(out)
    return out, 0, None


def on_one_disk(out: Path) -> None:
    """Errors: RunError where a process does not see what process 0 has written, a few seconds later at the latest."""
    until = time.monotonic() + (0 if RANK == 0 else 10)
    while not (out / "metrics.jsonl").is_file() and time.monotonic() < until:
        time.sleep(0.2)
    blind = gathered([] if (out / "metrics.jsonl").is_file() else [f"process {RANK} on {socket.gethostname()}"])
    if blind:
        raise RunError(f"{out} is not to be seen from {blind[0]}: choose an --out on a disk that all machines share.")


def history(out: Path) -> tuple[list[float], int, set[int]]:
    """From the metrics so far, the same on every process: the finite gradient norms, how many steps were skipped last in a
    row, and the steps that were evaluated."""
    lines = read_metrics(out)[1:] if RANK == 0 else []
    updates = [line for line in lines if line.get("policy/rows")]
    norms = [line["policy/grad_norm"] for line in updates if line["policy/grad_norm"] is not None]
    skips = next((n for n, line in enumerate(reversed(updates)) if not line["policy/skipped"]), len(updates))
    return from_rank_0((norms, skips, {line["step"] for line in lines if "eval/correct" in line}))


def append(out: Path, line: dict) -> None:
    if RANK == 0:
        finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in line.items()}
        with (out / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(finite) + "\n")
            file.flush()
            os.fsync(file.fileno())  # on the disk before the checkpoint of its step


class TimedGym:
    """A gym that counts its jobs, the different ones of each call, those among them never seen before, and the seconds in which it judges
    anything: `evaluate` may be called from many threads at once.

    beat: called after each verdict.
    """

    def __init__(self, gym, beat: Callable[[], None] = lambda: None):
        self.gym, self.beat, self.seen, self.lock, self.inside = gym, beat, set(), threading.Lock(), 0
        self.reset()

    def reset(self):
        self.seconds, self.jobs, self.distinct, self.new = 0.0, 0, 0, 0

    def evaluate(self, jobs, progress: bool = False):
        verdicts = [None] * len(jobs)
        with self.lock:
            self.inside += 1
            self.start = self.start if self.inside > 1 else time.perf_counter()
        try:
            for index, verdict in self.gym.as_completed(jobs):
                verdicts[index] = verdict
                self.beat()
            return verdicts
        finally:
            texts = {hash((job.task.key, job.code)) for job in jobs if job.code}
            with self.lock:
                self.inside -= 1
                self.seconds += 0.0 if self.inside else time.perf_counter() - self.start
                self.jobs += len(jobs)
                self.distinct += len(texts)
                self.new += len(texts - self.seen)
                self.seen |= texts

    def counts(self) -> dict[str, tuple[float, float]]:
        """Metric -> (sum, count), for over_processes."""
        rate = self.new, self.seconds / WORLD
        return {"gym/distinct": (self.distinct, self.jobs), "gym/evals_per_second": rate}


def measure(
    o, reward, returns, flat, keep_mrs, keep_prs, selected, logp_old, logp_rollout, sampled, weight
) -> dict[str, tuple[float, float]]:
    """Metric -> (sum, count) over this process; each is defined in the README. o: train.Outcomes.

    flat (P, K); logp_old, logp_rollout, sampled, weight (P, G, K, T); the rest (P, G, K).
    """
    valid, correct = o.valid, o.correct & o.valid
    judged = [s for s in o.status if s not in ("none", "out_of_context")]
    k1, k3 = rewards.mismatch(logp_old, logp_rollout)
    answered = sampled.any(dim=-1)

    def mean(values: Tensor, on: Tensor) -> tuple[float, float]:
        return values[on].double().sum().item(), on.sum().item()

    return {
        "reward/mean": mean(reward, valid),
        "reward/return": mean(returns[..., 0], valid[..., 0]),
        "reward/equal_groups": mean(flat, torch.ones_like(flat)),
        "gym/correct": mean(correct, valid),
        "gym/correct_last": mean(correct[..., -1], valid[..., -1]),
        **{f"gym/fast@{p:g}": mean(correct & (o.speedup >= p), valid) for p in (1.0, 1.2)},
        "gym/speedup": mean(o.speedup, correct),
        "gym/coverage": mean(o.coverage, correct),
        **{f"gym/{s.removeprefix('gym_')}": (judged.count(s), len(judged)) for s in STATUSES[1:]},
        "keep/mrs": mean(keep_mrs, valid & answered),
        "keep/prs": mean(keep_prs, correct),
        "keep/rows": mean(selected, valid),
        "policy/entropy": mean(-logp_rollout, sampled),
        "policy/kl_k1": mean(k1, sampled),
        "policy/kl_k3": mean(k3, sampled),
        "policy/ratio": mean((-k1).exp(), sampled),
        "policy/weight": mean(weight, sampled),
        "policy/tokens": (sampled.sum().item(), answered.sum().item()),
    }


def write_transcripts(path: Path, groups: Sequence[Sequence[Trajectory]], returns: Tensor) -> None:
    """The rollouts of this process with the highest and the lowest return, and the first, as text."""
    if RANK != 0 or not groups:
        return
    total = returns[..., 0].flatten()
    parts = []
    for row in dict.fromkeys([int(total.argmax()), int(total.argmin()), 0]):
        trajectory = groups[row // returns.shape[1]][row % returns.shape[1]]
        parts.append(
            f"{'=' * 100}\n{trajectory.task.name}  sample {trajectory.sample}  return {total[row]:.2f}\n\n{trajectory.task.source}"
        )
        for k, turn in enumerate(trajectory.turns):
            v = turn.verdict
            told = (
                f"{v.status}, speed-up {v.speedup:.2f}, coverage {v.coverage:.2f}\n{v.message}"
                if v
                else "no room in the context"
            )
            parts.append(f"{'-' * 40} turn {k + 1}: {len(turn.ids)} tokens\n{turn.text}\n{'-' * 40} verdict: {told}")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def one_line(line: dict, steps: int) -> str:
    """A step for the terminal."""

    def show(name: str) -> str:
        return "-" if line[name] is None else f"{line[name]:.2f}"

    text = f"step {line['step']:>4}/{steps}"
    text += f"  reward {show('reward/mean')}  correct {show('gym/correct')}  Fast@1.2 {show('gym/fast@1.2')}"
    text += f"  coverage {show('gym/coverage')}  kept {show('keep/mrs')} {show('keep/prs')}  |g| {line['policy/grad_norm']:.3f}"
    text += f"  {line['time/step']:.1f} s (rollout {line['time/rollout']:.1f}, gym {line['time/gym']:.1f})"
    return text


def held_out_line(line: dict) -> str:
    figures = {"correct": "eval/correct", "Fast@1": "eval/fast@1", "Fast@1.2": "eval/fast@1.2"}
    return "  held-out: " + "  ".join(
        f"{k} {'-' if line[v] is None else format(line[v], '.2f')}" for k, v in figures.items()
    )


def why_none(line: dict) -> str:
    """The reason for a step without an update, and what to do."""
    if not line["gym/correct"]:
        shares = {s: line[f"gym/{s.removeprefix('gym_')}"] for s in STATUSES[1:]}
        seen = ", ".join(f"{s} {share:.0%}" for s, share in shares.items() if share)
        return f"no kernel of the batch is correct ({seen}): read the transcripts; such a policy needs a cold start (sft.py)"
    if line["reward/equal_groups"] == 1:
        return "every group has equal returns: more --samples, other --tasks or --refill help"
    return "every row with a signal was rejected: see keep/mrs and keep/prs (--mrs-band, --prs-threshold)"


def why_skipped(loss: float, norm: float, norms: Sequence[float], factor: float) -> str | None:
    """Why a step on this gradient must not be taken, or None. norms: of the gradients before it."""
    if not (math.isfinite(loss) and math.isfinite(norm)):
        return "the loss or the gradient is not finite (a lower --lr or --grad-clip may help)"
    if factor > 0 and len(norms) >= 8 and norm > factor * statistics.median(norms):
        usual = f"the median of the last {len(norms)}, {statistics.median(norms):.3g}"
        return f"the gradient's norm, {norm:.3g}, is more than {factor:g} times {usual} (see --grad-explosion)"
    return None


def too_many_skips(skips: int, out: Path) -> str:
    look = f"{skips} steps in a row were skipped: see policy/grad_norm in {out / 'metrics.jsonl'}"
    return f"{look}. Try a lower --lr, --grad-explosion 0, or go on from an older checkpoint, with --resume {out}"


def gym_trouble(step: int, line: dict, turns: Sequence, out: Path) -> str:
    why = next((t.verdict.message for t in turns if t and t.verdict and t.verdict.status == "gym_error"), "")
    share = f"{line['gym/error']:.0%} of the evaluations of step {step} failed in the gym itself"
    return f"{share} ({why}). When that is mended, continue with --resume {out}"


def before_and_after(lines: list[dict]) -> str:
    """The held-out table of a run, from its metrics."""
    evals = [line for line in lines if "eval/correct" in line]
    before, after = evals[0], evals[-1]
    rows = [f"\nheld-out, last turn, {before['eval/tasks']} tasks", f"{'':<10}{'before':>16}{'after':>16}{'gain':>16}"]
    for name in ("correct", "fast@1", "fast@1.2", "fast@1.5", "fast@2", "coverage", "hack"):
        cells = [(line[f"eval/{name}"], line[f"eval/{name}_se"]) for line in (before, after)]
        (b, b_se), (a, a_se) = cells
        texts = [("-" if x is None else f"{x:.3f}") + ("" if se is None else f" ± {se:.3f}") for x, se in cells]
        if None not in (a, a_se, b, b_se):
            texts.append(f"{a - b:+.3f} ± {(b_se**2 + a_se**2) ** 0.5:.3f}")
        rows.append(f"{name:<10}" + "".join(f"{text:>16}" for text in texts))
    return "\n".join(rows)


def plot(out: Path) -> None:
    """out/plot.png: reward, correct, Fast@1.2, coverage and kept shares over the steps, held-out results as dots."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    lines = read_metrics(out)[1:]
    panels = (
        ("reward", ("reward/mean",)),
        ("correct", ("gym/correct", "eval/correct")),
        ("Fast@1.2", ("gym/fast@1.2", "eval/fast@1.2")),
        ("coverage", ("gym/coverage", "eval/coverage")),
        ("kept", ("keep/mrs", "keep/prs", "keep/rows")),
    )
    figure, axes = plt.subplots(1, len(panels), figsize=(4 * len(panels), 3.2), constrained_layout=True)
    for axis, (title, names) in zip(axes, panels, strict=True):
        for name in names:
            points = [(line["step"], line[name]) for line in lines if line.get(name) is not None]
            style = {"marker": "o", "linewidth": 0.8} if name.startswith("eval/") else {"linewidth": 1.2}
            axis.plot([x for x, _ in points], [y for _, y in points], label=name, **style)
        axis.set(title=title, xlabel="step")
        axis.legend(fontsize=7)
    figure.savefig(out / "plot.png", dpi=120)
    plt.close(figure)


def finish(out: Path) -> None:
    """The plot and the held-out table."""
    plot(out)
    tqdm.write(before_and_after(read_metrics(out)))
    tqdm.write(f"The policy: {checkpoints(out)[-1]}   metrics, transcripts, plot: {out}")


if __name__ == "__main__":
    finish(Path(sys.argv[1]))
