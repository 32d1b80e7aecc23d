"""Supervised fine-tuning: the cold start of the tiny policy, and any model on collected trajectories.

    python sft.py                                                the tiny policy, on toy solutions (minutes, one core)
    python sft.py --model qwen-8b --data runs/rollouts.jsonl     any model, on JSONL from rollout.py, on all visible GPUs
    torchrun sft.py --model qwen-8b-base --data coldstart/       on the parquet files of hkust-nlp/drkernel-coldstart-8k
    torchrun sft.py --resume runs/sft                            goes on where it was stopped

A row is a whole conversation: task, answer, verdict, next answer, ... Only the answers, with their end tokens, are in
the loss, whatever became of them; with --improved-only, only answers that are right and faster than all before them. A
step is normalised by its number of such tokens, over all processes.

The cold start leaves room for RL on purpose. It learns to copy from right solutions, single turns first, and ends on
conversations in which many answers are broken or lazy (MIX). It serves toy tasks of both sizes (CPU and GPU).

Under --out with --data: metrics.jsonl (loss, val_loss per answer token, grad_norm, lr, seconds), checkpoints/ while it
runs, and at the end the model itself, as from_pretrained loads it.

Departures from the paper: its cold start is 8,920 five-turn conversations of GPT-5, ours are made by
kernelbench/toy.py; the tiny policy's matrices are trained by Muon, which needs a fraction of AdamW's tokens to learn
to copy. drkernel-coldstart-8k keeps its own prompts, which are not those of rollout.py.
Not covered: packing of rows.
"""

import math
import random
import shutil
import sys
import time
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import tyro
from torch.distributed import is_initialized
from torch.distributed.tensor import DTensor
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import checkpoint
import logbook
import processes
from checkpoint import RunError
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
    tiny_policy,
    token_logprobs,
)
from packed import INPUT
from processes import RANK, WORLD, Stop, all_reduce, from_rank_0, say
from rollout import (
    FEEDBACK_TOKENS,
    Trajectory,
    TrajectoryError,
    Turn,
    encode_feedback,
    encode_prompt,
    load_jsonl,
    marker_ids,
    prompt_text,
    text_ids,
)
from watchdog import Watchdog
from weights import Muon, shard

MUTUAL = RunError, ModelError, TrajectoryError  # raised on every process at once
Row = tuple[Sequence[int], Sequence[int]]  # ids, and 1 where an id is in the loss

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
    tokenizer: PreTrainedTokenizerBase,
    prompt: str,
    turns: Sequence[tuple[str, Verdict | str | None]],
    brief: bool,
    chosen: Sequence[bool] | None = None,
    context: float = math.inf,
) -> Row | None:
    """The ids of a conversation, laid out as in rollout.py, and the mask of its answers.

    turns: (answer, the verdict or the text that follows it). chosen: which answers are in the loss (default: all). The
    first turns that fit `context` tokens are kept; None where no chosen one is among them.
    """
    ids = encode_prompt(tokenizer, prompt)
    wanted, end = [0] * len(ids), 0
    for k, (answer, reply) in enumerate(turns):
        new = text_ids(tokenizer, answer) + marker_ids(tokenizer, END)
        if len(ids) + len(new) > context:
            break
        ids, wanted = ids + new, wanted + [int(chosen is None or chosen[k])] * len(new)
        end = len(ids)
        if k + 1 < len(turns):
            if not isinstance(reply, str):
                reply = feedback(reply, FEEDBACK_TOKENS, lambda s: len(text_ids(tokenizer, s)), brief=brief)
            new = encode_feedback(tokenizer, ids, reply)
            ids, wanted = ids + new, wanted + [0] * len(new)
    return (ids[:end], wanted[:end]) if any(wanted[:end]) else None


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
    ids = torch.tensor([[*row] + [0] * (width - len(row)) for row, _ in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row, _ in rows], device=device)
    wanted = torch.tensor([[*w] + [0] * (width - len(w)) for _, w in rows], device=device)
    return ids, mask, wanted


def losses(model: PreTrainedModel, rows: list[Row], micro: int) -> Iterator[torch.Tensor]:
    """- sum of the log-probabilities of the wanted tokens of `micro` rows at a time; differentiable."""
    for start in range(0, len(rows), micro):
        ids, mask, wanted = pad_rows(rows[start : start + micro], model.device)
        yield -token_logprobs(model, ids, mask, wanted=wanted).sum()


def train_step(
    model: PreTrainedModel,
    optimizers: list[torch.optim.Optimizer],
    rows: list[Row],
    micro: int,
    tokens: int,
    world: int = 1,
) -> tuple[float, float]:
    """One step on this process's `rows`, `micro` at a time: loss = - sum of log-probabilities / `tokens` (of all
    processes). Returns this process's share of the loss, and the gradient's norm; where that is not finite, there is
    no step."""
    total = 0.0
    for nll in losses(model, rows, micro):
        (nll / tokens * world).backward()  # FSDP averages gradients over the processes
        total += nll.item() / tokens
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    norm = (norm.full_tensor() if isinstance(norm, DTensor) else norm).item()
    for optimizer in optimizers:
        if math.isfinite(norm):
            optimizer.step()
        optimizer.zero_grad()
    return total, norm


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
            loss, _ = train_step(model, optimizers, rows, len(rows), sum(sum(wanted) for _, wanted in rows))
            bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            bar.update()
    save_policy(model, tokenizer, out)
    return out


# ------------------------------------------------------------------------------------------ any model, on trajectories


def improved(turns: Sequence[Turn]) -> list[bool]:
    """Which turns are right and faster than all right ones before them."""
    chosen, best = [], 0.0
    for turn in turns:
        chosen.append(bool(turn.verdict and turn.verdict.correct and turn.verdict.speedup > best))
        best = turn.verdict.speedup if chosen[-1] else best
    return chosen


def trajectory_row(
    tokenizer: PreTrainedTokenizerBase, trajectory: Trajectory, style: str, context: int, improved_only: bool = False
) -> Row | None:
    """The row of a trajectory, tokenised by this model's tokenizer: its first turns that fit `context`."""
    kept = [turn for turn in trajectory.turns if turn.ids and turn.verdict]
    turns = [(turn.text, turn.verdict) for turn in kept]
    chosen = improved(kept) if improved_only else None
    return encode_row(tokenizer, prompt_text(trajectory.task, style), turns, style == "brief", chosen, context)


def messages_row(
    tokenizer: PreTrainedTokenizerBase, record: dict, context: int, improved_only: bool = False
) -> Row | None:
    """The row of a record of drkernel-coldstart-8k: messages [{role, content}], user and assistant in turn; best_round
    (from 1) and final_speedup. Its turns have no verdicts: the best round counts as the only improved one, if it is right.
    """
    texts = [message["content"] for message in record["messages"]]
    roles = [message["role"] for message in record["messages"]]
    if roles != ["user", "assistant"] * (len(roles) // 2) or not roles:
        raise TrajectoryError(
            f"messages must be user and assistant in turn, not {', '.join(map(str, roles)) or 'none'}"
        )
    turns = list(zip(texts[1::2], [*texts[2::2], None], strict=True))
    chosen = None
    if improved_only:
        right = (record.get("final_speedup") or 0.0) > 0  # nan: none of its rounds is right
        chosen = [right and k + 1 == record.get("best_round") for k in range(len(turns))]
    return encode_row(tokenizer, texts[0], turns, False, chosen, context)


def load_rows(path: Path, tokenizer: PreTrainedTokenizerBase, style: str, args: "Args") -> list[tuple[str, Row | None]]:
    """(task, row) of every conversation of a JSONL or parquet file, or of a folder of parquet files."""
    if not path.exists():
        raise TrajectoryError(f"{path}: no such file or folder: rollout.py collects trajectories.")
    settings = args.context, args.improved_only
    if path.is_file() and path.suffix != ".parquet":
        return [(t.task.key, compact(trajectory_row(tokenizer, t, style, *settings))) for t in load_jsonl(path)]
    import pyarrow
    import pyarrow.parquet

    rows = []
    for file in sorted(path.rglob("*.parquet")) if path.is_dir() else [path]:
        try:
            records = pyarrow.parquet.read_table(file).to_pylist()
        except pyarrow.ArrowException as error:
            raise TrajectoryError(f"{file} is no parquet file ({error}): fetch it again.") from None
        for number, record in enumerate(tqdm(records, desc=file.name, unit="row", leave=False, disable=RANK > 0)):
            try:
                row = messages_row(tokenizer, record, *settings)
            except (TrajectoryError, KeyError, TypeError) as error:
                raise TrajectoryError(f"{file}, row {number}: {type(error).__name__}: {error}") from None
            rows.append((str(record.get("original_python_code") or record.get("uuid") or number), compact(row)))
    return rows


def compact(row: Row | None) -> Row | None:
    """A list of ints takes 36 bytes a token, and every process holds all rows."""
    return row and (array("i", row[0]), bytes(row[1]))


def held_out(task: str, share: float) -> bool:
    """All conversations about one task are on the same side."""
    return zlib.crc32(task.encode()) < share * 2**32


@torch.no_grad()
def mean_loss(model: PreTrainedModel, rows: list[Row], micro: int) -> float:
    """Mean of - log p over the wanted tokens of all `rows`, spread over the processes."""
    mine = [*rows, *[(rows[0][0], bytes(len(rows[0][0])))] * (-len(rows) % WORLD)][RANK::WORLD]  # as many on each
    total = sum(nll.item() for nll in losses(model, mine, micro))
    total, tokens = all_reduce([total, sum(sum(wanted) for _, wanted in mine)])
    return total / tokens


def fine_tune(args: "Args", stop: Stop) -> None:
    """AdamW with warm-up and linear decay over the trajectories of args.data; sharded where there are several processes
    or a GPU."""
    device = torch.device(args.device)
    processes.join(device.type, sharded=device.type == "cuda")
    if args.batch % WORLD:
        raise ModelError(f"--batch {args.batch} does not divide over {WORLD} processes: make it a multiple of them.")
    if from_rank_0(((args.resume or args.out) / "config.json").exists()):
        raise RunError(f"{args.resume or args.out} holds a finished model: choose another --out.")
    out, done, folder = logbook.open_run(args, device.type)
    with Watchdog(out, 1200, stop, processes.board(), MUTUAL) as watch:
        style = "brief" if preset_of(args.model) == "tiny" else "full"
        big = style == "full"
        model, tokenizer = load_policy(
            str(folder or args.model), device, torch.float32, args.random_init and not folder
        )
        found = load_rows(args.data, tokenizer, style, args)
        rows = [row for task, row in found if row and not held_out(task, args.val_share)]
        val = [row for task, row in found if row and held_out(task, args.val_share)]
        if not rows:
            why = "no answer that improved and fits" if args.improved_only else "no answer that fits"
            raise TrajectoryError(f"{args.data} holds {why} {args.context} tokens: see --context.")
        counts = f"{len(rows)} of {len(found)} trajectories, {sum(sum(w) for _, w in rows)} tokens in the loss"
        say(f"{out}: {counts}, {len(val)} trajectories for val_loss; {args}")
        if is_initialized():
            compute = torch.bfloat16 if device.type == "cuda" and big else torch.float32
            shard(model, compute, keep=[INPUT] * model.config.num_hidden_layers if device.type == "cuda" else None)
        optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.01)
        if folder:
            checkpoint.load(folder, model, optimizer, args.lr, 0.01)
        model.get_input_embeddings().register_forward_pre_hook(watch.beat)
        dtype = torch.bfloat16 if big else torch.float32
        checkpoint.make_room(out, model, dtype)

        def save(step: int) -> None:
            state = {"step": step, "model": args.model, "seed": args.seed}
            checkpoint.save(out, state, model, tokenizer, optimizer, dtype, watch.beat)

        rng = random.Random(args.seed)
        order = [i for _ in range(args.epochs) for i in rng.sample(range(len(rows)), len(rows))]
        order += rng.choices(range(len(rows)), k=-len(order) % args.batch)  # the last batch is filled up
        steps = len(order) // args.batch
        with tqdm(initial=done, total=steps, desc="fine-tuning", unit="step", disable=RANK > 0) as bar:
            for step in range(done + 1, steps + 1):
                begin = time.perf_counter()
                batch = [rows[i] for i in order[(step - 1) * args.batch : step * args.batch]]
                batch.sort(key=lambda row: -len(row[0]))  # alike on all processes, which wait for each other
                rate = min(1.0, step / max(1, steps // 10)) * (1 - 0.9 * (step - 1) / steps)
                set_rate([optimizer], rate)
                tokens = sum(sum(wanted) for _, wanted in batch)
                loss, norm = train_step(model, [optimizer], batch[RANK::WORLD], args.micro_batch, tokens, WORLD)
                line = {"step": step, "loss": all_reduce([loss])[0], "grad_norm": norm, "lr": rate * args.lr}
                if val and (step == steps or step % args.eval_every == 0):
                    line["val_loss"] = mean_loss(model, val, args.micro_batch)
                    say(f"step {step}/{steps}  loss {line['loss']:.4f}  val_loss {line['val_loss']:.4f}")
                logbook.append(out, line | {"seconds": time.perf_counter() - begin})
                bar.set_postfix(loss=f"{line['loss']:.3f}", refresh=False)
                bar.update()
                stopped = stop()
                if stopped or step == steps or step % args.save_every == 0:
                    save(step)
                if stopped and step < steps:
                    return say(f"Stopped after step {step}. Continue with: torchrun sft.py --resume {out}")
        if RANK == 0:  # the export of the last checkpoint is the result; config.json, which comes last, makes it one
            files = [f for f in checkpoint.checkpoints(out)[-1].iterdir() if f.is_file() and f.name != "state.json"]
            for file in sorted(files, key=lambda file: file.name == "config.json"):
                (out / file.name).unlink(missing_ok=True)
                (out / file.name).hardlink_to(file)
            shutil.rmtree(out / "checkpoints")
        from_rank_0(None)
    say(f"saved {out}")


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
    resume: Path | None = None
    """with --data: folder of a run to continue; its arguments apply, except those given again"""
    improved_only: bool = False
    """with --data: train only on answers that are right and faster than all before them in their conversation"""
    val_share: float = 0.02
    """with --data: share of the tasks that is kept for val_loss"""
    eval_every: int = 50
    """with --data: steps between two val_loss"""
    save_every: int = 100
    """with --data: steps between checkpoints"""
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
    args = replace(args, device=args.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if args.data is not None:
        if args.device == "cuda":
            processes.one_process_per_gpu(sys.argv)
        with Stop() as stop:
            fine_tune(replace(args, out=args.out or Path("runs/sft")), stop)
        processes.leave()
    elif args.model == "tiny":
        say(f"saved {cold_start(args.device, args.out or TINY_FOLDER, args.seed, args.steps, again=True)}")
    else:
        raise ModelError(f"{args.model} needs trajectories to learn from: give --data FILE (rollout.py collects them).")


def parse(argv: list[str]) -> Args:
    args = tyro.cli(Args, args=argv, description=__doc__)
    if args.resume:
        before = Args(**(logbook.arguments_of(args.resume) | {"resume": args.resume}))
        args = tyro.cli(Args, args=argv, default=replace(before, data=Path(before.data)))
    return args


if __name__ == "__main__":
    with processes.one_sentence("sft.py", MUTUAL):
        processes.own_gpu()
        main(parse(sys.argv[1:]))
