"""Supervised fine-tuning: the cold start of the tiny policy, and any model on collected trajectories.

    python sft.py                                                the tiny policy, on toy solutions (minutes, one core)
    python sft.py --model qwen-8b --data runs/rollouts.jsonl     any model, on JSONL from rollout.py
    torchrun --nproc-per-node 8 sft.py --model qwen-8b --data runs/rollouts.jsonl        the same over 8 GPUs

A row is a whole conversation: task, answer, verdict, next answer, ... Only the answers, with their end tokens, are in
the loss, whatever became of them; a step is normalised by its number of such tokens, over all processes.

The cold start leaves room for RL on purpose. It learns to copy from right solutions, single turns first, and ends on
conversations in which many answers are broken or lazy (MIX). It serves toy tasks of both sizes (CPU and GPU).

Departures from the paper: its cold start is 8,920 five-turn conversations of GPT-5, ours are made by
kernelbench/toy.py; the tiny policy's matrices are trained by Muon, which needs a fraction of AdamW's tokens to learn
to copy.
Not covered: packing of rows.
"""

import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import tyro
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from feedback import feedback
from kernelbench import toy
from kernelbench.judge import Verdict
from model import (
    END,
    TINY_FOLDER,
    ModelError,
    load_policy,
    preset_of,
    save_policy,
    shard,
    tiny_policy,
    token_logprobs,
)
from rollout import (
    FEEDBACK_TOKENS,
    Trajectory,
    TrajectoryError,
    encode_feedback,
    encode_prompt,
    load_jsonl,
    marker_ids,
    prompt_text,
    text_ids,
)

Row = tuple[list[int], list[int]]  # ids, and 1 where an id is in the loss

# ---------------------------------------------------------------------------------------------------- toy conversations

STEPS = 900
POOL = 5000  # tasks of the cold start; each is seen several times, with other solutions
CLEAN = {"broken": 0.0, "lazy": 1.0, "half": 1.0, "fused": 1.0}
MIX = {"broken": 0.55, "lazy": 0.27, "half": 0.08, "fused": 0.10}
STAY = 0.5  # probability that after a right answer the quality stays; else, and after a broken one, it is drawn anew
# speed-up and coverage that the gym finds, lowest to highest
FOUND = {"lazy": ((0.9, 1.2), (0.1, 0.6)), "half": ((1.3, 2.2), (0.4, 1.0)), "fused": ((1.8, 4.5), (1.0, 1.0))}


def answer_text(code: str) -> str:
    return f"```python\n{code}```"


def made_up_verdict(quality: str, code: str, rng: random.Random) -> Verdict:
    """What the gym would about say, without running anything."""
    if quality == "broken":
        try:
            compile(code, "answer", "exec")
        except SyntaxError:
            return Verdict(status="compile_error")
        return Verdict(status=rng.choice(("runtime_error", "wrong")))
    speedup, coverage = FOUND[quality]
    return Verdict(status="correct", correct=True, speedup=rng.uniform(*speedup), coverage=rng.uniform(*coverage))


def conversation(toy_task: toy.Toy, turns: int, mix: dict[str, float], rng: random.Random) -> list[tuple[str, Verdict]]:
    """(answer, verdict) per turn; `mix` weighs the qualities."""
    out, quality = [], "broken"
    for _ in range(turns):
        if quality == "broken" or rng.random() >= STAY:
            quality = rng.choices(list(mix), list(mix.values()))[0]
        code = toy_task.solution(quality, rng)
        out.append((answer_text(code), made_up_verdict(quality, code, rng)))
    return out


def encode_row(
    tokenizer: PreTrainedTokenizerBase, prompt: str, turns: list[tuple[str, Verdict | None]], brief: bool
) -> Row:
    """The ids of a conversation, laid out as in rollout.py, and the mask of its answers."""
    ids = encode_prompt(tokenizer, prompt)
    wanted = [0] * len(ids)
    for k, (answer, verdict) in enumerate(turns):
        new = text_ids(tokenizer, answer) + marker_ids(tokenizer, END)
        ids, wanted = ids + new, wanted + [1] * len(new)
        if k + 1 < len(turns):
            told = feedback(verdict, FEEDBACK_TOKENS, lambda s: len(text_ids(tokenizer, s)), brief=brief)
            new = encode_feedback(tokenizer, ids, told)
            ids, wanted = ids + new, wanted + [0] * len(new)
    return ids, wanted


def tokenizer_texts(tasks: list[toy.Toy], rng: random.Random) -> list[str]:
    """Everything that the tiny policy reads or writes: task sources, solutions of all qualities, verdicts."""
    texts = []
    for task in tasks:
        texts.append(f"user\n{task.task.source}")
        for quality in toy.QUALITIES:
            code = task.solution(quality, rng)
            told = feedback(made_up_verdict(quality, code, rng), FEEDBACK_TOKENS, len, brief=True)
            texts += [answer_text(code), f"user\n{told}"]
    return [*texts, "assistant\n", "\n"]


def toy_batches(
    tokenizer: PreTrainedTokenizerBase, pool: list[toy.Toy], steps: int, rng: random.Random
) -> Iterator[list[Row]]:
    """Batches of about equally many tokens: right single turns, then right conversations, then the mix."""
    for step in range(steps):
        turns, rows = (1, 32) if step < 0.5 * steps else (3, 12)
        mix = CLEAN if step < 0.65 * steps else MIX
        tasks = (rng.choice(pool) for _ in range(rows))
        yield [encode_row(tokenizer, t.task.source, conversation(t, turns, mix, rng), brief=True) for t in tasks]


# ------------------------------------------------------------------------------------------------------------- training


def pad_rows(rows: list[Row], device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """ids, mask of real tokens, mask of wanted tokens: (B, T) each, padded on the right; masks come from lengths."""
    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([row + [0] * (width - len(row)) for row, _ in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row, _ in rows], device=device)
    wanted = torch.tensor([w + [0] * (width - len(w)) for _, w in rows], device=device)
    return ids, mask, wanted


def train_step(
    model: PreTrainedModel,
    optimizers: list[torch.optim.Optimizer],
    rows: list[Row],
    micro: int,
    tokens: int,
    world: int = 1,
) -> float:
    """One step on this process's `rows`, `micro` at a time: loss = - sum of log-probabilities / `tokens` (of all
    processes). Returns this process's share of the loss."""
    total = 0.0
    for start in range(0, len(rows), micro):
        ids, mask, wanted = pad_rows(rows[start : start + micro], model.device)
        loss = -token_logprobs(model, ids, mask, wanted=wanted).sum() / tokens
        (loss * world).backward()  # FSDP averages gradients over the processes
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    return total


class Muon(torch.optim.Optimizer):
    """Momentum SGD whose update of a matrix is replaced by (about) the nearest semi-orthogonal one, found by five steps of a
    Newton-Schulz iteration (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon), at AdamW's update size (Liu et al.
    2025, arXiv 2502.16982). torch.optim.Muon iterates in bfloat16, which made four fifths of the cold start on a CPU without it."""

    def __init__(
        self, matrices: list[torch.nn.Parameter], lr: float, momentum: float = 0.95, weight_decay: float = 0.01
    ):
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, momentum = group["lr"], group["momentum"]
            for p in group["params"]:
                mean = self.state[p].setdefault("momentum", torch.zeros_like(p))
                mean.lerp_(p.grad, 1 - momentum)
                update = orthogonal(p.grad.lerp(mean, momentum))  # Nesterov
                p.mul_(1 - lr * group["weight_decay"]).sub_(update, alpha=0.2 * lr * max(p.shape) ** 0.5)


def orthogonal(x: torch.Tensor) -> torch.Tensor:
    """(m, n) = U S Vᵀ -> about U Vᵀ: singular values above 0.2 % of the norm end in [0.65, 1.25]."""
    wide = x.shape[0] <= x.shape[1]
    x = (x if wide else x.T) / x.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (2.0315 * gram @ gram - 4.775 * gram) @ x
    return x if wide else x.T


def set_rate(optimizers: list[torch.optim.Optimizer], factor: float) -> None:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = factor * group.setdefault("peak", group["lr"])


def cold_start(
    device: torch.device | str = "cpu",
    out: Path = TINY_FOLDER,
    seed: int = 0,
    steps: int = STEPS,
    again: bool = False,
    progress: bool = True,
) -> Path:
    """Makes the tiny policy in the folder `out` (whole or not at all) and returns it; one that is there is kept unless
    `again`. Deterministic in seed and steps on one kind of device. On the CPU it uses one thread, which is what it
    needs."""
    out = Path(out)
    if (out / "config.json").is_file() and not again:
        return out
    if torch.device(device).type == "cpu":
        torch.set_num_threads(1)
    out.parent.mkdir(parents=True, exist_ok=True)  # no write permission is found out now, not after the training
    rng = random.Random(f"cold start {seed}")
    pool = [toy.make("train", seed, i, ("cpu", "cuda")[i % 2]) for i in range(min(POOL, 32 * steps))]
    model, tokenizer = tiny_policy(tokenizer_texts(pool[:2000], rng), seed=seed)
    model.to(device).train()
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "layers" in name]
    others = [p for name, p in model.named_parameters() if not (p.ndim == 2 and "layers" in name)]
    optimizers = [
        Muon(matrices, lr=0.01),
        torch.optim.AdamW(others, lr=0.01, betas=(0.9, 0.98), weight_decay=0.01),
    ]
    bar = tqdm(total=steps, desc="cold start of the tiny policy", unit="step", disable=not progress)
    with bar:
        for step, rows in enumerate(toy_batches(tokenizer, pool, steps, rng)):
            set_rate(optimizers, min(1.0, (step + 1) / 20) * (1 - 0.9 * step / steps))
            loss = train_step(model, optimizers, rows, len(rows), sum(sum(wanted) for _, wanted in rows))
            bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            bar.update()
    save_policy(model, tokenizer, out)
    return out


# ------------------------------------------------------------------------------------------------ any model, from JSONL


def trajectory_row(tokenizer: PreTrainedTokenizerBase, trajectory: Trajectory, style: str, context: int) -> Row | None:
    """The row of a trajectory, tokenised by this model's tokenizer: its longest run of first turns that fits
    `context`."""
    turns = [(turn.text, turn.verdict) for turn in trajectory.turns if turn.ids and turn.verdict]
    for kept in range(len(turns), 0, -1):
        row = encode_row(tokenizer, prompt_text(trajectory.task, style), turns[:kept], brief=style == "brief")
        if len(row[0]) <= context:
            return row
    return None


def fine_tune(args: "Args", say: Callable[[str], None]) -> None:
    """AdamW with warm-up and linear decay over the trajectories of args.data; sharded where torchrun started
    several."""
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device(args.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    if args.batch % world:
        raise ModelError(f"--batch {args.batch} does not divide over {world} processes: make it a multiple of them.")
    style = "brief" if preset_of(args.model) == "tiny" else "full"
    trajectories = load_jsonl(args.data)
    model, tokenizer = load_policy(args.model, device, torch.float32, args.random_init)
    rows = [row for t in trajectories if (row := trajectory_row(tokenizer, t, style, args.context))]
    if not rows:
        raise TrajectoryError(f"{args.data} holds no answer that fits {args.context} tokens: see --context.")
    say(f"{len(rows)} of {len(trajectories)} trajectories, {sum(sum(w) for _, w in rows)} tokens in the loss; {args}")
    if world > 1 or device.type == "cuda":
        if not dist.is_initialized():
            os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
            os.environ.setdefault("MASTER_PORT", "29511")
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo", rank=rank, world_size=world)
        compute = torch.bfloat16 if device.type == "cuda" and style == "full" else torch.float32
        shard(model, compute, checkpointing=device.type == "cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.01)
    rng = random.Random(args.seed)
    order = [i for _ in range(args.epochs) for i in rng.sample(range(len(rows)), len(rows))]
    order += rng.choices(range(len(rows)), k=-len(order) % args.batch)  # the last batch is filled up
    steps = len(order) // args.batch
    with tqdm(total=steps, desc="fine-tuning", unit="step", disable=rank > 0) as bar:
        for step in range(steps):
            batch = [rows[i] for i in order[step * args.batch : (step + 1) * args.batch]]
            set_rate([optimizer], min(1.0, (step + 1) / max(1, steps // 10)) * (1 - 0.9 * step / steps))
            tokens = sum(sum(wanted) for _, wanted in batch)
            loss = train_step(model, [optimizer], batch[rank::world], args.micro_batch, tokens, world)
            bar.set_postfix(loss=f"{loss * world:.3f}")
            bar.update()
    save_policy(model, tokenizer, args.out)
    say(f"saved {args.out}")


@dataclass
class Args:
    """The cold start of the tiny policy, or (with --data) fine-tuning of any model on trajectories."""

    model: str = "tiny"
    """tiny, an alias, a hub id, or a folder"""
    data: Path | None = None
    """JSONL from rollout.py; without it the tiny policy is made from toy solutions"""
    out: Path | None = None
    """folder of the result; default: where `--model tiny` is looked for, with --data runs/sft"""
    seed: int = 0
    """of weights, data and their order"""
    steps: int = STEPS
    """optimizer steps of the cold start"""
    device: str | None = None
    """cpu or cuda; by default cuda where there is one"""
    lr: float = 2e-5
    """with --data: peak learning rate"""
    epochs: int = 4
    """with --data: passes over the trajectories"""
    batch: int = 64
    """with --data: trajectories per step, over all processes"""
    micro_batch: int = 1
    """with --data: trajectories per forward and backward"""
    context: int = 18_432
    """with --data: longest conversation in tokens; turns that do not fit are left out"""
    random_init: bool = False
    """with --data: random weights in the model's shape, to try a machine without a download"""


def main(args: Args) -> None:
    say = print if int(os.environ.get("RANK", 0)) == 0 else lambda _: None
    if args.data is not None:
        args.out = args.out or Path("runs/sft")
        fine_tune(args, say)
    elif args.model == "tiny":
        device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
        say(f"saved {cold_start(device, args.out or TINY_FOLDER, args.seed, args.steps, again=True)}")
    else:
        raise ModelError(f"{args.model} needs trajectories to learn from: give --data FILE (rollout.py collects them).")


if __name__ == "__main__":
    try:
        main(tyro.cli(Args, description=__doc__))
    except (ModelError, TrajectoryError) as error:
        sys.exit(f"sft.py: {error}")
    except OSError as error:
        sys.exit(f"sft.py: {error}: check that path; nothing was saved there.")
    except KeyboardInterrupt:
        sys.exit("\nInterrupted: nothing was saved; a model that was there is as it was.")
